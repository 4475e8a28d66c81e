//! The threads of one batch: started when first needed, kept until the batch ends.
//!
//! A batch of Python objects goes piece by piece, and each piece has work for all threads twice, hashing
//! and applying. Starting a thread takes as long as thousands of keys, and waking one up as long as
//! a thousand. So a crew stays together, and between two jobs its members look for the next one for a
//! while before they sleep.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{Builder, JoinHandle};

/// A thread is not worth having for fewer keys than this.
const WORTH_A_THREAD: usize = 1 << 13;
/// How often a member looks for a job before it sleeps: some tenths of a millisecond.
const PATIENCE: u32 = 1 << 14;

/// Threads that do one job after the other together; the caller is the first of them.
#[derive(Debug)]
pub struct Crew {
    threads: usize,
    members: Vec<Member>,
    /// The process that started the members: a forked child has inherited none of them.
    process: u32,
}

#[derive(Debug)]
struct Member {
    desk: Arc<Desk>,
    handle: JoinHandle<()>,
}

/// Where a member finds its next job.
#[derive(Debug)]
struct Desk {
    /// `IDLE`, `BUSY` or `DISMISSED`.
    state: AtomicU8,
    job: Mutex<Job>,
}

const IDLE: u8 = 0;
const BUSY: u8 = 1;
const DISMISSED: u8 = 2;

/// A borrowed closure without its type and lifetime.
#[derive(Clone, Copy, Debug)]
struct Job {
    work: *const (),
    call: unsafe fn(*const (), usize),
}

// SAFETY: made by `Hands::run` of closures that are `Sync`.
unsafe impl Send for Job {}

impl Job {
    const NONE: Job = Job { work: std::ptr::null(), call: |_, _| () };

    fn of<F: Fn(usize) + Sync>(work: &F) -> Self {
        /// # Safety
        /// `work` points to a live `F`.
        unsafe fn call<F: Fn(usize)>(work: *const (), number: usize) {
            // SAFETY: the caller's promise.
            unsafe { (*work.cast::<F>())(number) }
        }
        Job { work: std::ptr::from_ref(work).cast(), call: call::<F> }
    }
}

impl Crew {
    /// A crew of at most so many threads, and no more than the machine has cores, because they wait
    /// for each other by spinning.
    pub fn new(threads: usize) -> Self {
        static CORES: OnceLock<usize> = OnceLock::new();
        let cores = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Crew::of(threads.min(*CORES.get_or_init(cores)))
    }

    /// A crew of so many threads, whatever the machine has.
    pub(crate) fn of(threads: usize) -> Self {
        Crew { threads, members: Vec::new(), process: std::process::id() }
    }

    /// Calls up as many threads as are worth it for so many rows and can be had.
    pub fn muster(&mut self, rows: usize) -> Hands<'_> {
        let useful = self.threads.min(rows / WORTH_A_THREAD).max(1);
        if useful > 1 && self.is_inherited() {
            self.members.drain(..).for_each(std::mem::forget);
            self.process = std::process::id();
        }
        while self.members.len() + 1 < useful {
            let Some(member) = Member::start(self.members.len() + 1) else { break };
            self.members.push(member);
        }
        Hands(&self.members[..self.members.len().min(useful - 1)])
    }

    fn is_inherited(&self) -> bool {
        self.process != std::process::id()
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        if self.members.is_empty() {
            return;
        }
        if self.is_inherited() {
            return self.members.drain(..).for_each(std::mem::forget);
        }
        for member in &self.members {
            member.desk.state.store(DISMISSED, Ordering::Release);
            member.handle.thread().unpark();
        }
        for member in self.members.drain(..) {
            // A member that panicked has said so on the standard error.
            let _ = member.handle.join();
        }
    }
}

impl Member {
    fn start(number: usize) -> Option<Self> {
        let desk = Arc::new(Desk { state: AtomicU8::new(IDLE), job: Mutex::new(Job::NONE) });
        let theirs = Arc::clone(&desk);
        let handle = Builder::new().spawn(move || theirs.serve(number)).ok()?;
        Some(Member { desk, handle })
    }
}

/// The members called up for a job, and the caller.
#[derive(Debug)]
pub struct Hands<'a>(&'a [Member]);

impl Hands<'_> {
    /// How many threads they are, with the caller.
    pub fn count(&self) -> usize {
        self.0.len() + 1
    }

    /// Runs `work(0)` here and `work(1)`, `work(2)`, ... on the members; returns when all are done.
    pub fn run<F: Fn(usize) + Sync>(&self, work: F) {
        let busy = Busy(self.0);
        for member in busy.0 {
            *member.desk.job() = Job::of(&work);
            member.desk.state.store(BUSY, Ordering::Release);
            member.handle.thread().unpark();
        }
        work(0);
        // Waits; so it does if this thread's share panics, because it goes before `work`.
        drop(busy);
    }
}

/// Members that have a job; dropping it waits for them.
struct Busy<'a>(&'a [Member]);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        for member in self.0 {
            let mut spins = 0;
            // A member that panicked never becomes idle.
            while member.desk.state.load(Ordering::Acquire) == BUSY && !member.handle.is_finished()
            {
                wait_a_little(&mut spins);
            }
        }
    }
}

impl Desk {
    fn job(&self) -> std::sync::MutexGuard<'_, Job> {
        self.job.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, number: usize) {
        let mut spins = 0;
        loop {
            match self.state.load(Ordering::Acquire) {
                DISMISSED => return,
                BUSY => {
                    let job = *self.job();
                    // SAFETY: `Hands::run` keeps the closure alive until this thread is no longer busy.
                    unsafe { (job.call)(job.work, number) };
                    self.state.store(IDLE, Ordering::Release);
                    spins = 0;
                }
                _ if spins < PATIENCE => wait_a_little(&mut spins),
                _ => std::thread::park(),
            }
        }
    }
}

/// One turn of waiting for another thread: mostly a pause of the processor, now and then of the thread.
pub(crate) fn wait_a_little(spins: &mut u32) {
    *spins += 1;
    if spins.is_multiple_of(256) {
        std::thread::yield_now();
    } else {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn every_thread_does_every_job_once() {
        let mut crew = Crew::of(3);
        for round in 0..500 {
            let hands = crew.muster(WORTH_A_THREAD * (round % 4));
            let threads = hands.count();
            assert_eq!(threads, (round % 4).clamp(1, 3));
            let turns = [const { AtomicUsize::new(0) }; 3];
            hands.run(|number| {
                turns[number].fetch_add(1, Ordering::Relaxed);
            });
            let turns = turns.map(AtomicUsize::into_inner);
            assert_eq!(turns, [1, usize::from(threads > 1), usize::from(threads > 2)]);
        }
    }

    #[test]
    fn a_sleeping_member_wakes_up_for_the_next_job() {
        let mut crew = Crew::of(2);
        for _ in 0..3 {
            let sum = AtomicUsize::new(0);
            crew.muster(usize::MAX).run(|number| {
                sum.fetch_add(number + 1, Ordering::Relaxed);
            });
            assert_eq!(sum.into_inner(), 3);
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    #[test]
    fn a_forked_child_starts_its_own_members() {
        let mut crew = Crew::of(2);
        assert_eq!(crew.muster(usize::MAX).count(), 2);
        let old = crew.members[0].handle.thread().id();
        // As in a child: the members belong to another process.
        crew.process += 1;
        assert_eq!(crew.muster(usize::MAX).count(), 2);
        assert_eq!(crew.process, std::process::id());
        assert_ne!(crew.members[0].handle.thread().id(), old);
    }
}
