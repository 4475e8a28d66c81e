//! Commands that the host answers, if it says so: about the process, its files and its other parts.

use crate::command::{Command, Keys, is};
use crate::keyspace::REFUSED;

const HOST: u32 = is::ADMIN | is::DANGEROUS;

/// Words of such commands that need more rights than the others: as in Redis, they tell of all clients, or end them.
const PARTS: &[Command] = &[
    Command::foreign("CLIENT|LIST", -2, OTHERS, Keys::NONE),
    Command::foreign("CLIENT|KILL", -3, OTHERS, Keys::NONE),
];
const OTHERS: u32 = is::CONNECTION | is::LOADING | HOST | is::PART;

/// Those of a command.
pub fn parts(name: &str) -> impl Iterator<Item = Command> + '_ {
    let own = |part: &&Command| part.name.split('|').next() == Some(name);
    PARTS.iter().filter(own).copied()
}

/// What is known of them. Others that the host names are taken as dangerous ones.
pub const TABLE: &[Command] = &[
    Command::foreign("INFO", -1, is::DANGEROUS | is::LOADING, Keys::NONE),
    Command::foreign("CONFIG", -2, HOST | is::LOADING, Keys::NONE),
    Command::foreign("CLIENT", -2, is::CONNECTION | is::LOADING | is::PARENT, Keys::NONE),
    Command::foreign(REFUSED, 1, is::CONNECTION | is::PART, Keys::NONE),
    Command::foreign("SAVE", 1, HOST, Keys::NONE),
    Command::foreign("BGSAVE", -1, HOST, Keys::NONE),
    Command::foreign("BGREWRITEAOF", 1, HOST, Keys::NONE),
    Command::foreign("LASTSAVE", 1, is::FAST | HOST | is::LOADING, Keys::NONE),
    Command::foreign("SHUTDOWN", -1, HOST | is::LOADING, Keys::NONE),
    Command::foreign("MODULE", -2, HOST, Keys::NONE),
    Command::foreign("DEBUG", -2, HOST, Keys::NONE),
    Command::foreign("WAITAOF", 4, is::CONNECTION, Keys::NONE),
    Command::foreign("TIME", 1, is::FAST | is::LOADING, Keys::NONE),
    Command::foreign("ROLE", 1, is::FAST | HOST, Keys::NONE),
    Command::foreign("LATENCY", -2, HOST, Keys::NONE),
    Command::foreign("SLOWLOG", -2, HOST, Keys::NONE),
    Command::foreign("HISTORY.RESERVE", -2, is::MONITOR | is::WRITE, Keys::FIRST),
    Command::foreign("HISTORY.ADD", -3, is::MONITOR | is::WRITE, Keys::FIRST),
    Command::foreign("HISTORY.MADD", -3, is::MONITOR | is::WRITE, Keys::FIRST),
    Command::foreign("HISTORY.COUNT", -3, is::MONITOR | is::READ, Keys::FIRST),
    Command::foreign("HISTORY.SERIES", -3, is::MONITOR | is::READ, Keys::FIRST),
    Command::foreign("HISTORY.TOTAL", -2, is::MONITOR | is::READ, Keys::FIRST),
    Command::foreign("HISTORY.TOP", -2, is::MONITOR | is::READ, Keys::FIRST),
    Command::foreign("HISTORY.INFO", 2, is::MONITOR | is::READ, Keys::FIRST),
    Command::foreign("HISTORY.LIST", 1, is::MONITOR | is::READ, Keys::NONE),
    Command::foreign("MONITOR.SEEN", -2, is::MONITOR | is::READ, Keys::NONE),
    Command::foreign("MONITOR.COUNT", -2, is::MONITOR | is::READ, Keys::NONE),
    Command::foreign("MONITOR.HEAT", -2, is::MONITOR | is::READ, Keys::NONE),
    Command::foreign("MONITOR.TOP", -1, is::MONITOR | is::READ, Keys::NONE),
    Command::foreign("MONITOR.STATS", 1, is::MONITOR | is::READ, Keys::NONE),
    Command::foreign("GUARD.LIST", 1, is::MONITOR | is::READ, Keys::NONE),
    Command::foreign("GUARD.STATS", -2, is::MONITOR | is::READ, Keys::NONE),
];
