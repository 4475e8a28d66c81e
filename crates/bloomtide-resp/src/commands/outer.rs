//! Commands that the host answers, if it says so: about the process, its files and its other parts.

use crate::command::{Command, Keys, is};

const HOST: u32 = is::ADMIN | is::DANGEROUS;

/// What is known of them. Others that the host names are taken as dangerous ones.
pub const TABLE: &[Command] = &[
    Command::foreign("INFO", -1, is::DANGEROUS | is::LOADING),
    Command::foreign("CONFIG", -2, HOST | is::LOADING),
    Command::foreign("CLIENT", -2, is::CONNECTION | is::LOADING),
    Command::foreign("SAVE", 1, HOST),
    Command::foreign("BGSAVE", -1, HOST),
    Command::foreign("BGREWRITEAOF", 1, HOST),
    Command::foreign("LASTSAVE", 1, is::FAST | HOST | is::LOADING),
    Command::foreign("SHUTDOWN", -1, HOST | is::LOADING),
    Command::foreign("MODULE", -2, HOST),
    Command::foreign("DEBUG", -2, HOST),
    Command::foreign("TIME", 1, is::FAST | is::LOADING),
    Command::foreign("ROLE", 1, is::FAST | HOST),
    Command::foreign("LATENCY", -2, HOST),
    Command::foreign("SLOWLOG", -2, HOST),
    Command::foreign("HISTORY.RESERVE", -2, is::MONITOR | is::WRITE).on(Keys::FIRST),
    Command::foreign("HISTORY.ADD", -3, is::MONITOR | is::WRITE).on(Keys::FIRST),
    Command::foreign("HISTORY.MADD", -3, is::MONITOR | is::WRITE).on(Keys::FIRST),
    Command::foreign("HISTORY.COUNT", -3, is::MONITOR | is::READ).on(Keys::FIRST),
    Command::foreign("HISTORY.SERIES", -3, is::MONITOR | is::READ).on(Keys::FIRST),
    Command::foreign("HISTORY.TOTAL", -2, is::MONITOR | is::READ).on(Keys::FIRST),
    Command::foreign("HISTORY.TOP", -2, is::MONITOR | is::READ).on(Keys::FIRST),
    Command::foreign("HISTORY.INFO", 2, is::MONITOR | is::READ).on(Keys::FIRST),
    Command::foreign("HISTORY.LIST", 1, is::MONITOR | is::READ),
    Command::foreign("MONITOR.SEEN", -2, is::MONITOR | is::READ),
    Command::foreign("MONITOR.COUNT", -2, is::MONITOR | is::READ),
    Command::foreign("MONITOR.HEAT", -2, is::MONITOR | is::READ),
    Command::foreign("MONITOR.TOP", -1, is::MONITOR | is::READ),
    Command::foreign("MONITOR.STATS", 1, is::MONITOR | is::READ),
    Command::foreign("GUARD.LIST", 1, is::MONITOR | is::READ),
    Command::foreign("GUARD.STATS", -2, is::MONITOR | is::READ),
];
