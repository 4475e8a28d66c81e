//! COMMAND and ACL: what can be asked here, and by whom. Made from the one table.

use super::generic::subcommand;
use crate::command::{Call, Command, Keys, is};
use crate::failure::Answer;
use crate::wire::reply::Reply;

/// The family.
pub const TABLE: &[Command] = &[
    Command::new("COMMAND", -1, is::CONNECTION | is::LOADING, Keys::NONE, command),
    Command::new("ACL", -2, is::ADMIN | is::DANGEROUS | is::LOADING, Keys::NONE, acl),
];

fn command(call: &mut Call<'_>) -> Answer {
    let (args, commands) = (call.args, call.table.commands());
    let whole: Vec<&Command> = commands.iter().filter(|it| !it.has(is::PART)).collect();
    let reply = &mut *call.reply;
    if args.len() == 1 || (args.len() == 2 && args.is(1, "INFO")) {
        reply.array(whole.len());
        whole.iter().for_each(|command| about(reply, command));
    } else if args.is(1, "COUNT") {
        reply.int(whole.len() as i64);
    } else if args.is(1, "LIST") {
        reply.array(whole.len());
        whole.iter().for_each(|it| reply.bulk(it.name.to_ascii_lowercase().as_bytes()));
    } else if args.is(1, "INFO") {
        let wanted = args.from(2);
        reply.array(wanted.len());
        for name in wanted.iter() {
            match call.table.find(name) {
                Some(number) => about(reply, &commands[number]),
                None => reply.null(),
            }
        }
    } else if args.is(1, "DOCS") {
        let wanted: Vec<&Command> = if args.len() == 2 {
            whole
        } else {
            let found = args.from(2).iter().filter_map(|name| call.table.find(name));
            found.map(|number| &commands[number]).collect()
        };
        reply.map(wanted.len());
        for command in wanted {
            reply.bulk(command.name.to_ascii_lowercase().as_bytes());
            reply.map(1);
            reply.bulk(b"group");
            reply.bulk(group(command).as_bytes());
        }
    } else {
        return Err(subcommand("command", call));
    }
    Ok(())
}

fn group(command: &Command) -> &'static str {
    // The families come last among the names.
    let own = is::NAMES.iter().rev().find(|(_, bit)| command.has(*bit));
    own.map_or("generic", |(name, _)| name)
}

fn about(reply: &mut Reply, command: &Command) {
    let flags = [
        (is::WRITE, "write"),
        (is::READ, "readonly"),
        (is::FAST, "fast"),
        (is::ADMIN, "admin"),
        (is::OPEN, "no_auth"),
        (is::LOADING, "loading"),
    ];
    let flags: Vec<_> = flags.iter().filter(|(bit, _)| command.has(*bit)).collect();
    let categories: Vec<_> = is::NAMES.iter().filter(|(_, bit)| command.has(*bit)).collect();
    let slow = !command.has(is::FAST);
    reply.array(10);
    reply.bulk(command.name.to_ascii_lowercase().as_bytes());
    reply.int(i64::from(command.arity));
    reply.set(flags.len());
    flags.iter().for_each(|(_, name)| reply.simple(name));
    for place in [command.keys.0, command.keys.1, command.keys.2] {
        reply.int(i64::from(place));
    }
    reply.set(categories.len() + usize::from(slow));
    categories.iter().for_each(|(name, _)| reply.simple(&format!("@{name}")));
    if slow {
        reply.simple("@slow");
    }
    // Tips, key specifications and subcommands.
    (0..3).for_each(|_| reply.array(0));
}

fn acl(call: &mut Call<'_>) -> Answer {
    let (args, users) = (call.args, call.users);
    let reply = &mut *call.reply;
    if args.is(1, "WHOAMI") {
        reply.bulk(call.session.user.as_deref().unwrap_or("default").as_bytes());
    } else if args.is(1, "LIST") {
        reply.array(users.iter().len());
        users.iter().for_each(|user| reply.bulk(user.line(call.table).as_bytes()));
    } else if args.is(1, "USERS") {
        reply.array(users.iter().len());
        users.iter().for_each(|user| reply.bulk(user.name().as_bytes()));
    } else if args.is(1, "CAT") && args.len() == 2 {
        reply.array(is::NAMES.len() + 1);
        is::NAMES.iter().for_each(|(name, _)| reply.bulk(name.as_bytes()));
        reply.bulk(b"slow");
    } else if args.is(1, "CAT") && args.len() == 3 {
        let wanted = String::from_utf8_lossy(args.at(2)).to_ascii_lowercase();
        let bit = is::NAMES.iter().find(|(name, _)| *name == wanted).map(|(_, bit)| *bit);
        let in_it = |command: &&Command| match bit {
            Some(bit) => command.has(bit),
            None => wanted == "slow" && !command.has(is::FAST),
        };
        let names: Vec<_> = call.table.commands().iter().filter(in_it).collect();
        if names.is_empty() {
            let text = format!("ERR Unknown category '{wanted}'");
            return Err(crate::Failure::said(text));
        }
        reply.array(names.len());
        names.iter().for_each(|it| reply.bulk(it.name.to_ascii_lowercase().as_bytes()));
    } else {
        return Err(subcommand("acl", call));
    }
    Ok(())
}
