//! Everything together: bytes of a client in, its answers out.
//!
//! # Invariants
//! I1  A command that fails changes nothing but counters of statistics, and is answered by one error.
//! I2  What changed something is noted in `changes`, in order; done again with the same times on the same
//!     beginning it gives the same contents.
//! I3  The answers do not depend on how the bytes were cut.

use crate::acl::{User, Users};
use crate::changes::{Changes, Records};
use crate::command::{Call, Command, Run, Table, is};
use crate::expiry;
use crate::failure::{Answer, Failure};
use crate::session::{Queue, Session, State};
use crate::store::Store;
use crate::wire::reply::Reply;
use crate::wire::request::{Args, Limits};
use bloomtide_core::Result;

/// Answers of this size are sent before more is done: one read of requests may ask for far more than it is.
const ENOUGH: usize = 64 << 20;
/// Elements of a request, and of one by a client that has not shown who it is.
const ELEMENTS: (i64, i64) = (1 << 20, 10);
/// Bytes of an element by a client that has not shown who it is.
const UNKNOWN_BULK: i64 = 16 << 10;
/// Told to the host instead of the refusal of a password, if it has such a command: it answers when it is time.
pub const REFUSED: &str = "AUTH|REFUSED";
/// Bytes of requests after which the host is asked whether to go on.
const LOOK: usize = 512;
/// Memory of an element between MULTI and EXEC, beside its bytes.
const EACH_QUEUED: usize = 64;

/// How often a command was called, and how often in vain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// All calls.
    pub calls: u64,
    /// Those that were answered by an error.
    pub errors: u64,
}

/// Named structures and the commands on them.
#[derive(Debug)]
pub struct Keyspace {
    /// The structures.
    pub store: Store,
    /// What was changed since it was last taken.
    pub changes: Changes,
    /// All commands.
    pub table: Table,
    /// All users.
    pub users: Users,
    read_only: Option<String>,
    /// Whether data is being loaded.
    pub loading: bool,
    /// Requests that were none of a known command.
    pub unknown: u64,
    calls: Vec<Calls>,
    max_bulk: i64,
}

impl Keyspace {
    /// An empty keyspace. The seed should be unknown to whoever chooses names; `foreign` are the commands
    /// that the host answers.
    pub fn new(seed: u64, max_memory: Option<u64>, max_bulk: usize, foreign: &[String]) -> Self {
        let table = Table::new(foreign);
        Keyspace {
            store: Store::new(seed, max_memory),
            changes: Changes::default(),
            users: Users::open(&table),
            calls: vec![Calls::default(); table.commands().len()],
            table,
            unknown: 0,
            max_bulk: i64::try_from(max_bulk).unwrap_or(i64::MAX / 4),
            read_only: None,
            loading: false,
        }
    }

    /// A new client.
    pub fn session(&self, client: i64) -> Session {
        Session::new(client, self.users.anonymous().map(|user| user.name().to_owned()))
    }

    /// Whether the client's user may use a key of that name.
    pub fn may_use(&self, session: &mut Session, name: &[u8]) -> bool {
        let State { user, seat, .. } = &mut session.state;
        self.users.seated(user, seat).is_some_and(|user| user.may_use(name))
    }

    /// Changes users as lines of an access list say; all of them or none.
    pub fn set_users<'a>(&mut self, lines: impl Iterator<Item = &'a str>) -> Result<()> {
        self.users.apply(lines, &self.table)
    }

    /// Why nothing may be changed, if so.
    pub fn read_only(&self) -> Option<&str> {
        self.read_only.as_deref()
    }

    /// Refuses changes from now on, for that reason.
    pub fn set_read_only(&mut self, reason: Option<String>) {
        self.changes.stopped = reason.is_some();
        self.read_only = reason;
    }

    /// Forgets at most so many names that have expired; how many it were.
    pub fn expire(&mut self, most: usize, now: f64) -> usize {
        expiry::forget_due(most, &mut self.store, &mut self.changes, now)
    }

    /// Each command with its calls.
    pub fn calls(&self) -> impl Iterator<Item = (&Command, Calls)> {
        self.table.commands().iter().zip(self.calls.iter().copied())
    }

    fn limits(&self, known: bool) -> Limits {
        let total = (self.max_bulk as usize).saturating_mul(2).max(1 << 20);
        if known {
            return Limits { elements: ELEMENTS.0, bulk: self.max_bulk, total, known };
        }
        Limits { elements: ELEMENTS.1, bulk: self.max_bulk.min(UNKNOWN_BULK), total, known }
    }

    /// Does everything that is whole in what the client sent, now and before. Answers are in `session.reply`.
    pub fn execute(&mut self, session: &mut Session, data: &[u8], now: f64) {
        self.execute_while(session, data, now, &mut || true);
    }

    /// The same, until `go_on` says that others should get their turn; then `session.more` is true.
    pub fn execute_while(
        &mut self,
        session: &mut Session,
        data: &[u8],
        now: f64,
        go_on: &mut dyn FnMut() -> bool,
    ) {
        session.more = false;
        if session.state.closing {
            return;
        }
        if session.state.foreign.is_some() {
            session.held.extend_from_slice(data);
            return;
        }
        if session.buffered() > 0 {
            session.held.extend_from_slice(data);
            return self.go_on(session, now, go_on);
        }
        let done = self.run_all(session, data, now, go_on);
        if !session.state.closing {
            session.held.extend_from_slice(&data[done..]);
        }
    }

    /// Goes on after the host answered a foreign command in `session.reply`.
    pub fn resume(&mut self, session: &mut Session, now: f64, go_on: &mut dyn FnMut() -> bool) {
        session.state.foreign = None;
        session.more = false;
        self.go_on(session, now, go_on);
    }

    fn go_on(&mut self, session: &mut Session, now: f64, go_on: &mut dyn FnMut() -> bool) {
        let held = std::mem::take(&mut session.held);
        let rest = held.get(session.from..).unwrap_or_default();
        let done = self.run_all(session, rest, now, go_on);
        session.held = held;
        session.from += done;
        session.settle();
        if session.state.closing {
            session.discard();
        }
    }

    /// Does all whole requests of `bytes`; how many bytes they have.
    fn run_all(
        &mut self,
        session: &mut Session,
        bytes: &[u8],
        now: f64,
        go_on: &mut dyn FnMut() -> bool,
    ) -> usize {
        let (mut start, mut looked) = (0, 0);
        loop {
            let known = session.state.user.is_some();
            match session.parser.step(&bytes[start..], &self.limits(known)) {
                Ok(None) => return start,
                Err(refusal) => {
                    session.reply.error(&refusal.0);
                    session.state.closing = true;
                    session.parser.reset();
                    return bytes.len();
                }
                Ok(Some(len)) => {
                    self.run(session, &bytes[start..], now);
                    session.parser.reset();
                    start += len;
                    if session.state.closing || session.state.foreign.is_some() {
                        return start;
                    }
                    let mut enough = session.reply.len() > ENOUGH;
                    if start - looked >= LOOK {
                        looked = start;
                        enough |= !go_on();
                    }
                    if enough {
                        session.more = start < bytes.len();
                        return start;
                    }
                }
            }
        }
    }

    /// Does the request that the session's parser found at the first of `bytes`.
    #[inline]
    fn run(&mut self, session: &mut Session, bytes: &[u8], now: f64) {
        let Session { parser, reply, state, .. } = session;
        let args = parser.args(bytes);
        if args.len() == 0 {
            return;
        }
        let Some(number) = self.table.find_request(args) else {
            self.unknown += 1;
            if is_http(args) {
                // A page of a browser may send what it likes here; Redis ends the connection, too.
                state.closing = true;
                return;
            }
            state.queue.iter_mut().for_each(|queue| queue.broken = true);
            return reply.error(&unknown(args));
        };
        let command = &self.table.commands()[number];
        self.calls[number].calls += 1;
        let user = self.users.seated(&state.user, &mut state.seat);
        let plain = user.is_some_and(User::may_everything)
            && command.takes(args.len())
            && !self.loading
            && self.read_only.is_none()
            && state.queue.is_none();
        if plain {
            return self.perform(number, args, reply, state, now);
        }
        let read_only = self.read_only.as_deref();
        if let Err(failure) = allowed(command, number, args, user, self.loading, read_only) {
            self.calls[number].errors += 1;
            state.queue.iter_mut().for_each(|queue| queue.broken = true);
            return reply.error(&failure.0);
        }
        match state.queue.take() {
            Some(queue) if command.name == "EXEC" => self.perform_all(*queue, reply, state, now),
            Some(mut queue) if !command.has(is::NOW) => {
                self.put_off(&mut queue, number, args, reply);
                state.queue = Some(queue);
            }
            queue => {
                state.queue = queue;
                self.perform(number, args, reply, state, now);
            }
        }
    }

    /// Does a command that is allowed.
    #[inline]
    fn perform(
        &mut self,
        number: usize,
        args: Args<'_>,
        reply: &mut Reply,
        session: &mut State,
        now: f64,
    ) {
        let Some(run) = self.table.commands()[number].run else {
            session.foreign = Some(args.iter().map(<[u8]>::to_vec).collect());
            return;
        };
        self.store.tell(now);
        if self.store.is_due(expiry::millis(now)) {
            expiry::before(args, &mut self.store, &mut self.changes, now);
        }
        let start = reply.len();
        if let Err(failure) = self.call(run, args, reply, session, now) {
            self.calls[number].errors += 1;
            reply.truncate(start);
            if failure == Failure::WRONG_PASSWORD && self.table.find(REFUSED.as_bytes()).is_some() {
                session.foreign = Some(vec![REFUSED.into()]);
                return;
            }
            reply.error(&failure.0);
        }
    }

    #[inline]
    fn call(
        &mut self,
        run: Run,
        args: Args<'_>,
        reply: &mut Reply,
        session: &mut State,
        now: f64,
    ) -> Answer {
        run(&mut Call {
            args,
            reply,
            store: &mut self.store,
            changes: &mut self.changes,
            session,
            users: &self.users,
            table: &self.table,
            now,
        })
    }

    /// Keeps a command until EXEC.
    #[cold]
    fn put_off(&mut self, queue: &mut Queue, number: usize, args: Args<'_>, reply: &mut Reply) {
        let most = (self.max_bulk as usize).saturating_mul(2);
        queue.size += args.iter().map(|arg| arg.len() + EACH_QUEUED).sum::<usize>();
        let command = &self.table.commands()[number];
        // A wrong password must be able to wait, as the host's commands do.
        if command.run.is_none() || command.has(is::OPEN) || queue.size > most {
            queue.broken = true;
            self.calls[number].errors += 1;
            return reply.error("ERR Command not allowed inside a transaction");
        }
        let (bytes, spans) = args.copied();
        queue.commands.push((number, bytes, spans));
        reply.simple("QUEUED");
    }

    /// Does all commands that were kept.
    #[cold]
    fn perform_all(&mut self, queue: Queue, reply: &mut Reply, session: &mut State, now: f64) {
        let watched = std::mem::take(&mut session.watched);
        if queue.broken {
            return reply.error("EXECABORT Transaction discarded because of previous errors.");
        }
        let millis = expiry::millis(now);
        if watched.iter().any(|(name, change)| self.store.changed(name, millis) != *change) {
            return reply.null_array();
        }
        reply.array(queue.commands.len());
        for (number, bytes, spans) in &queue.commands {
            self.perform(*number, Args::new(bytes, spans), reply, session, now);
        }
    }

    /// Does changes again that were taken from a keyspace. What was done before a damaged record stays done.
    pub fn replay(&mut self, payload: &[u8]) -> Result<()> {
        // What was acknowledged under other limits is kept under these.
        let limits = (self.store.limit.take(), self.store.most.take());
        let silent = std::mem::replace(&mut self.changes.silent, true);
        let result = self.replay_all(payload);
        (self.store.limit, self.store.most) = limits;
        self.changes.silent = silent;
        result
    }

    fn replay_all(&mut self, payload: &[u8]) -> Result<()> {
        let mut session = Session::new(0, None);
        let mut records = Records::new(payload);
        loop {
            let at = records.offset();
            let Some((now, args)) = records.read()? else { return Ok(()) };
            let damaged = |why: &str| bloomtide_core::Error::Field {
                name: "changes",
                got: format!("the record at byte {at}: {why}"),
            };
            let number = args.get(0).and_then(|name| self.table.find(name));
            let command = number.map(|number| self.table.commands()[number]);
            let run = command.filter(|it| it.has(is::WRITE) && it.takes(args.len()));
            let run = run.and_then(|command| command.run);
            let run = run.ok_or_else(|| damaged("no command that changes anything"))?;
            session.reply.clear();
            let done = self.call(run, args, &mut session.reply, &mut session.state, now);
            done.map_err(|failure| damaged(&failure.0))?;
        }
    }
}

/// Whether the request may be done, by whoever asks and now.
#[cold]
fn allowed(
    command: &Command,
    number: usize,
    args: Args<'_>,
    user: Option<&User>,
    loading: bool,
    read_only: Option<&str>,
) -> Answer {
    let name = || command.name.to_ascii_lowercase();
    if !command.takes(args.len()) {
        let text = format!("ERR wrong number of arguments for '{}' command", name());
        return Err(Failure::said(text));
    }
    match user {
        None if command.has(is::OPEN) => {}
        None => return Err(Failure::new("NOAUTH Authentication required.")),
        Some(user) if user.may_everything() || command.has(is::OPEN) => {}
        Some(user) => {
            if !user.may_run(number) {
                let (user, name) = (user.name(), name());
                let text =
                    format!("NOPERM User {user} has no permissions to run the '{name}' command");
                return Err(Failure::said(text));
            }
            if !command.keys.places(args.len()).all(|place| user.may_use(args.at(place))) {
                let text = "NOPERM No permissions to access a key";
                return Err(Failure::new(text));
            }
        }
    }
    if loading && !command.has(is::LOADING) {
        return Err(Failure::new("LOADING bloomtide is loading the dataset in memory"));
    }
    match read_only {
        Some(reason) if command.has(is::WRITE) => Err(Failure::said(format!("MISCONF {reason}"))),
        _ => Ok(()),
    }
}

/// Whether it begins as lines of a request over HTTP do.
#[cold]
fn is_http(args: Args<'_>) -> bool {
    args.is(0, "POST") || args.is(0, "HOST:")
}

#[cold]
fn unknown(args: Args<'_>) -> String {
    let shown = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(128)]).into_owned();
        text.replace(|c: char| c.is_control(), " ")
    };
    let mut text =
        format!("ERR unknown command '{}', with args beginning with: ", shown(args.at(0)));
    for arg in args.from(1).iter() {
        if text.len() > 256 {
            break;
        }
        text.push_str(&format!("'{}' ", shown(arg)));
    }
    text
}
