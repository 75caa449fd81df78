//! What time it is, as the cluster tells it.
//!
//! Owns the one clock of a live run: the machine's, corrected by what the API server's answers show of its own. In tests it is tokio's,
//! which can be paused.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Seconds by which the two clocks must differ before the difference is believed: `Date` headers have whole seconds, and answers take
/// time.
const NOTICEABLE_S: i64 = 3;

#[derive(Debug, Clone, Copy)]
enum Base {
    /// The machine's: right also after the machine slept, which tokio's clock does not notice.
    Machine,
    /// A start, and what tokio's clock counted since.
    Tokio(Timestamp, Instant),
}

/// Tells the time; clones tell the same.
#[derive(Debug, Clone)]
pub struct Clock {
    base: Base,
    /// Seconds by which the API server is ahead.
    ahead: Arc<AtomicI64>,
}

impl Clock {
    /// The machine's clock.
    pub fn machine() -> Self {
        Self { base: Base::Machine, ahead: Arc::default() }
    }

    /// A clock that shows `start` now and goes on as tokio's does.
    pub fn starting_at(start: Timestamp) -> Self {
        Self { base: Base::Tokio(start, Instant::now()), ahead: Arc::default() }
    }

    /// The time on the API server's clock, as far as it is known.
    pub fn now(&self) -> Timestamp {
        let own = self.own();
        own.checked_add(SignedDuration::from_secs(self.skew_s())).unwrap_or(own)
    }

    /// Seconds by which the API server's clock is ahead of this machine's; 0 where they agree to within a few seconds.
    pub fn skew_s(&self) -> i64 {
        self.ahead.load(Ordering::Relaxed)
    }

    /// Takes note of a `Date` header that has just come.
    pub fn heard(&self, date: &str) {
        let Ok(theirs) = jiff::fmt::rfc2822::parse(date) else { return };
        let seconds = theirs.timestamp().duration_since(self.own()).as_secs();
        let ahead = if seconds.abs() >= NOTICEABLE_S { seconds } else { 0 };
        // Between two seconds the difference flickers: only a change that is one counts.
        if (ahead - self.skew_s()).abs() >= NOTICEABLE_S {
            self.ahead.store(ahead, Ordering::Relaxed);
        }
    }

    fn own(&self) -> Timestamp {
        match self.base {
            Base::Machine => Timestamp::now(),
            Base::Tokio(start, since) => {
                let passed = SignedDuration::try_from(since.elapsed()).unwrap_or(SignedDuration::ZERO);
                start.checked_add(passed).unwrap_or(start)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_server_that_is_ahead_is_believed_when_it_is_more_than_a_flicker() {
        let start: Timestamp = "2026-11-12T10:00:00Z".parse().unwrap();
        let clock = Clock::starting_at(start);
        clock.heard("Thu, 12 Nov 2026 10:00:01 GMT");
        assert_eq!((clock.skew_s(), clock.now()), (0, start));
        clock.heard("Thu, 12 Nov 2026 10:01:00 GMT");
        assert_eq!((clock.skew_s(), clock.now()), (60, "2026-11-12T10:01:00Z".parse().unwrap()));
        clock.heard("Thu, 12 Nov 2026 10:01:01 GMT");
        assert_eq!(clock.skew_s(), 60);
        clock.heard("nonsense");
        clock.heard("Thu, 12 Nov 2026 09:59:59 GMT");
        assert_eq!(clock.skew_s(), 0);
    }
}
