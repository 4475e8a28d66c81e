//! Commands about the connection: who is there, and how both talk.

use super::words;
use crate::command::{Call, Command, Keys, is};
use crate::failure::{Answer, Failure};
use crate::wire::number;

const ANYONE: u32 = is::CONNECTION | is::FAST | is::LOADING;
const OPEN: u32 = ANYONE | is::OPEN;

/// The family.
pub const TABLE: &[Command] = &[
    Command::new("PING", -1, ANYONE, Keys::NONE, ping),
    Command::new("ECHO", 2, ANYONE, Keys::NONE, echo),
    Command::new("HELLO", -1, OPEN, Keys::NONE, hello),
    Command::new("AUTH", -2, OPEN, Keys::NONE, auth),
    Command::new("QUIT", -1, OPEN | is::NOW, Keys::NONE, quit),
    Command::new("RESET", 1, OPEN | is::NOW, Keys::NONE, reset),
    Command::new("SELECT", 2, ANYONE, Keys::NONE, select),
];

fn ping(call: &mut Call<'_>) -> Answer {
    match call.args.len() {
        1 => call.reply.simple("PONG"),
        2 => call.reply.bulk(call.args.at(1)),
        _ => return Err(Failure::new("ERR wrong number of arguments for 'ping' command")),
    }
    Ok(())
}

fn echo(call: &mut Call<'_>) -> Answer {
    call.reply.bulk(call.args.at(1));
    Ok(())
}

fn quit(call: &mut Call<'_>) -> Answer {
    call.session.closing = true;
    words::ok(call)
}

fn reset(call: &mut Call<'_>) -> Answer {
    call.session.user = call.users.anonymous().map(|user| user.name().to_owned());
    call.session.seat = Default::default();
    call.session.name.clear();
    call.session.queue = None;
    call.session.watched.clear();
    call.reply.set_protocol(2);
    call.reply.simple("RESET");
    Ok(())
}

fn select(call: &mut Call<'_>) -> Answer {
    match number::integer(call.args.at(1)) {
        Some(0) => call.reply.ok(),
        Some(_) => return Err(Failure::new("ERR DB index is out of range")),
        None => return Err(Failure::NOT_AN_INTEGER),
    }
    Ok(())
}

fn log_in(call: &mut Call<'_>, name: &[u8], password: &[u8]) -> Answer {
    let user = call.users.authenticate(name, password).ok_or(Failure::WRONG_PASSWORD)?;
    call.session.user = Some(user.name().to_owned());
    call.session.seat = Default::default();
    Ok(())
}

fn auth(call: &mut Call<'_>) -> Answer {
    match call.args.len() {
        2 if call.users.anonymous().is_some() => {
            return Err(Failure::new(
                "ERR AUTH <password> called without any password configured for the default user. \
                 Are you sure your configuration is correct?",
            ));
        }
        2 => log_in(call, b"default", call.args.at(1))?,
        3 => log_in(call, call.args.at(1), call.args.at(2))?,
        _ => return Err(Failure::SYNTAX),
    }
    words::ok(call)
}

fn hello(call: &mut Call<'_>) -> Answer {
    let args = call.args;
    let protocol = match args.get(1) {
        None => call.reply.protocol(),
        Some(text) => match number::integer(text) {
            Some(version @ (2 | 3)) => version as u8,
            Some(_) => return Err(Failure::new("NOPROTO unsupported protocol version")),
            None => {
                let text = "ERR Protocol version is not an integer or out of range";
                return Err(Failure::new(text));
            }
        },
    };
    let (mut at, mut login, mut name) = (2, None, None);
    while at < args.len() {
        if args.is(at, "AUTH") && at + 2 < args.len() {
            login = Some((args.at(at + 1), args.at(at + 2)));
            at += 3;
        } else if args.is(at, "SETNAME") && at + 1 < args.len() {
            name = Some(client_name(args.at(at + 1))?);
            at += 2;
        } else {
            let option = String::from_utf8_lossy(args.at(at));
            return Err(Failure::said(format!("ERR Syntax error in HELLO option '{option}'")));
        }
    }
    if let Some((user, password)) = login {
        log_in(call, user, password)?;
    }
    if call.session.user.is_none() {
        return Err(Failure::new(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> \
             AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol \
             version at the same time",
        ));
    }
    if let Some(name) = name {
        call.session.name = name;
    }
    let (reply, client) = (&mut *call.reply, call.session.client);
    reply.set_protocol(protocol);
    reply.map(7);
    reply.bulk(b"server");
    reply.bulk(b"bloomtide");
    reply.bulk(b"version");
    reply.bulk(env!("CARGO_PKG_VERSION").as_bytes());
    reply.bulk(b"proto");
    reply.int(i64::from(protocol));
    reply.bulk(b"id");
    reply.int(client);
    reply.bulk(b"mode");
    reply.bulk(b"standalone");
    reply.bulk(b"role");
    reply.bulk(b"master");
    reply.bulk(b"modules");
    reply.array(0);
    Ok(())
}

/// A client's name, if it may be one: a line of INFO or CLIENT LIST must stay one.
pub fn client_name(name: &[u8]) -> Result<String, Failure> {
    if name.iter().all(|byte| (b'!'..=b'~').contains(byte)) {
        return Ok(String::from_utf8_lossy(name).into_owned());
    }
    Err(Failure::new("ERR Client names cannot contain spaces, newlines or special characters."))
}
