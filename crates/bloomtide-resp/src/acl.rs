//! Users: who may do what to which keys. A subset of the access lists of Redis.
//!
//! ```text
//! user <name> [on|off] [nopass|resetpass|>password|<password|#sha256|!sha256]
//!             [~pattern|allkeys|resetkeys] [+command|-command|+@category|-@category|allcommands|nocommands] [reset]
//! ```
//!
//! Words are applied from left to right. Passwords are kept as their SHA-256 only, and compared in constant time.

use crate::command::{Table, is};
use crate::pattern;
use crate::wire::number;
use bloomtide_core::{Error, Result};
use sha2::{Digest, Sha256};

type Secret = [u8; 32];

/// A user.
#[derive(Clone, Debug)]
pub struct User {
    name: String,
    on: bool,
    no_password: bool,
    passwords: Vec<Secret>,
    patterns: Vec<Vec<u8>>,
    /// For each command of the table, whether it is allowed.
    commands: Vec<bool>,
    /// Every command on every key.
    everything: bool,
}

/// All users.
#[derive(Debug)]
pub struct Users {
    users: Vec<User>,
    /// Changes with every change, so that sessions look again; never 0.
    edition: u64,
}

impl Users {
    /// One user, `default`, who may do everything without a password.
    pub fn open(table: &Table) -> Self {
        let mut user = User::new("default", table);
        (user.on, user.no_password) = (true, true);
        user.patterns = vec![b"*".to_vec()];
        user.commands = vec![true; table.commands().len()];
        user.everything = true;
        Users { users: vec![user], edition: 1 }
    }

    /// Changes users as the lines say; all lines or none. Users that they do not name stay.
    pub fn apply<'a>(&mut self, lines: impl Iterator<Item = &'a str>, table: &Table) -> Result<()> {
        let mut users = self.users.clone();
        for line in lines {
            let mut words = line.split_ascii_whitespace();
            let Some(first) = words.next() else { continue };
            if first.starts_with('#') {
                continue;
            }
            let name = words.next().filter(|_| first.eq_ignore_ascii_case("user"));
            let name = name.ok_or_else(|| refused(first, "a line `user <name> <rules>`"))?;
            let place = users.iter().position(|user| user.name == name).unwrap_or_else(|| {
                users.push(User::new(name, table));
                users.len() - 1
            });
            for word in words {
                users[place].rule(word, table)?;
            }
            users[place].settle();
        }
        self.users = users;
        self.edition += 1;
        Ok(())
    }

    /// The user of that name with that password.
    pub fn authenticate(&self, name: &[u8], password: &[u8]) -> Option<&User> {
        let digest: Secret = Sha256::digest(password).into();
        let user = self.users.iter().find(|user| user.name.as_bytes() == name);
        // As much work for an unknown name.
        let known = user.map_or(&[][..], |user| &user.passwords);
        let mut right = false;
        for secret in known {
            let difference = secret.iter().zip(&digest).fold(0, |acc, (a, b)| acc | (a ^ b));
            right |= std::hint::black_box(difference) == 0;
        }
        user.filter(|user| user.on && (user.no_password || right))
    }

    /// The user whom clients are that did not say who they are; None if they have to.
    pub fn anonymous(&self) -> Option<&User> {
        self.users.iter().find(|user| user.name == "default" && user.on && user.no_password)
    }

    /// The user who sits at that place, or found again after a change.
    #[inline]
    pub(crate) fn seated(&self, name: &Option<String>, seat: &mut (u64, usize)) -> Option<&User> {
        let name = name.as_deref()?;
        if seat.0 != self.edition {
            let place = self.users.iter().position(|user| user.name == name && user.on)?;
            *seat = (self.edition, place);
        }
        self.users.get(seat.1)
    }

    /// All users.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &User> {
        self.users.iter()
    }
}

impl User {
    fn new(name: &str, table: &Table) -> Self {
        User {
            name: name.to_owned(),
            on: false,
            no_password: false,
            passwords: Vec::new(),
            patterns: Vec::new(),
            commands: vec![false; table.commands().len()],
            everything: false,
        }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether every command is allowed on every key.
    #[inline]
    pub fn may_everything(&self) -> bool {
        self.everything
    }

    /// Whether the command is allowed.
    pub fn may_run(&self, number: usize) -> bool {
        self.commands.get(number).copied().unwrap_or(false)
    }

    /// Whether the key may be used.
    pub fn may_use(&self, key: &[u8]) -> bool {
        self.patterns.iter().any(|pattern| pattern::matches(pattern, key))
    }

    fn settle(&mut self) {
        let all_keys = self.patterns.iter().any(|pattern| pattern == b"*");
        self.everything = all_keys && self.commands.iter().all(|allowed| *allowed);
    }

    fn rule(&mut self, word: &str, table: &Table) -> Result<()> {
        let lower = word.to_ascii_lowercase();
        match lower.as_str() {
            "on" => self.on = true,
            "off" => self.on = false,
            "nopass" => (self.no_password, self.passwords) = (true, Vec::new()),
            "resetpass" => (self.no_password, self.passwords) = (false, Vec::new()),
            "allkeys" => self.patterns = vec![b"*".to_vec()],
            "resetkeys" => self.patterns.clear(),
            "allcommands" | "+@all" => self.commands.fill(true),
            "nocommands" | "-@all" => self.commands.fill(false),
            "reset" => *self = User::new(&self.name, table),
            // Channels are accepted and mean nothing: there are none here.
            "allchannels" | "resetchannels" => {}
            _ => return self.marked(word, table),
        }
        Ok(())
    }

    fn marked(&mut self, word: &str, table: &Table) -> Result<()> {
        let Some(mark) = word.chars().next() else { return Ok(()) };
        let rest = &word[mark.len_utf8()..];
        let digest = || -> Secret { Sha256::digest(rest).into() };
        let hashed = || unhex(rest).ok_or_else(|| refused(word, "a SHA-256 of 64 digits"));
        match mark {
            '>' => self.learn(digest()),
            '#' => self.learn(hashed()?),
            '<' => self.passwords.retain(|known| *known != digest()),
            '!' => {
                let secret = hashed()?;
                self.passwords.retain(|known| *known != secret);
            }
            '~' => self.patterns.push(rest.as_bytes().to_vec()),
            '&' => {}
            '+' | '-' => return self.commands_rule(word, rest, mark == '+', table),
            _ => return Err(refused(word, "a rule such as `on`, `>password`, `~*` or `+@all`")),
        }
        Ok(())
    }

    fn learn(&mut self, secret: Secret) {
        self.no_password = false;
        if !self.passwords.contains(&secret) {
            self.passwords.push(secret);
        }
    }

    fn commands_rule(&mut self, word: &str, name: &str, allow: bool, table: &Table) -> Result<()> {
        if let Some(category) = name.strip_prefix('@') {
            let slow = category.eq_ignore_ascii_case("slow");
            let bit = is::NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(category));
            let bit = bit.map_or(0, |(_, bit)| *bit);
            if bit == 0 && !slow {
                return Err(refused(word, "a category that ACL CAT lists"));
            }
            for (command, allowed) in table.commands().iter().zip(&mut self.commands) {
                if if slow { !command.has(is::FAST) } else { command.has(bit) } {
                    *allowed = allow;
                }
            }
            return Ok(());
        }
        let number = table.find(name.as_bytes()).ok_or_else(|| refused(word, "a known command"))?;
        self.commands[number] = allow;
        table.parts(number).for_each(|part| self.commands[part] = allow);
        Ok(())
    }

    /// The user as a line, passwords by their SHA-256.
    pub fn line(&self, table: &Table) -> String {
        let mut line = format!("user {} {}", self.name, if self.on { "on" } else { "off" });
        if self.no_password {
            line.push_str(" nopass");
        }
        for secret in &self.passwords {
            line.push_str(" #");
            line.extend(secret.iter().map(|byte| format!("{byte:02x}")));
        }
        for pattern in &self.patterns {
            line.push_str(" ~");
            line.push_str(&String::from_utf8_lossy(pattern));
        }
        let allowed = self.commands.iter().filter(|allowed| **allowed).count();
        // The shorter of the two ways to say it.
        let most = allowed * 2 > self.commands.len();
        line.push_str(if most { " +@all" } else { " -@all" });
        let mut parent = most;
        for (command, allowed) in table.commands().iter().zip(&self.commands) {
            // What is said of a command goes for its parts, which follow it.
            let said = if command.has(is::PART) { parent } else { most };
            if *allowed != said {
                line.push_str(if *allowed { " +" } else { " -" });
                line.push_str(&command.name.to_ascii_lowercase());
            }
            if !command.has(is::PART) {
                parent = *allowed;
            }
        }
        line
    }
}

fn refused(word: &str, allowed: &'static str) -> Error {
    // A password is never repeated.
    let shown = if word.starts_with(['>', '<', '#', '!']) { "(a password)" } else { word };
    Error::parameter(
        "users",
        shown,
        allowed,
        "for example `user ann on >password ~crawl:* +@bloom`",
    )
}

fn unhex(text: &str) -> Option<Secret> {
    let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(number::hex).collect();
    bytes?.try_into().ok()
}
