//! The embedded cluster's one clock: tokio's, so that it stands still and jumps when tokio's does.
//!
//! Owns what "now" is and how Kubernetes writes a time. Must not be read by pure modules: they are handed the time.

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Tells the time from a fixed start; the passing of time is tokio's, paused or real.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    start: Timestamp,
    since: Instant,
}

impl Clock {
    /// A clock that shows `start` now.
    pub fn starting_at(start: Timestamp) -> Self {
        Self { start, since: Instant::now() }
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        let passed = SignedDuration::try_from(self.since.elapsed()).unwrap_or(SignedDuration::ZERO);
        self.start.checked_add(passed).unwrap_or(self.start)
    }
}

/// As `metav1.Time` is written: whole seconds, UTC.
pub fn seconds(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// As `metav1.MicroTime` is written: six digits of a second, UTC.
pub fn micros(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_kubernetes_writes_them() {
        let at = Timestamp::new(1_790_000_000, 123_456_789).unwrap_or_default();
        assert_eq!(seconds(at), "2026-09-21T14:13:20Z");
        assert_eq!(micros(at), "2026-09-21T14:13:20.123456Z");
    }

    #[tokio::test(start_paused = true)]
    async fn a_paused_clock_moves_only_with_tokio() {
        let clock = Clock::starting_at(Timestamp::UNIX_EPOCH);
        assert_eq!(clock.now(), Timestamp::UNIX_EPOCH);
        tokio::time::advance(std::time::Duration::from_secs(90)).await;
        assert_eq!(seconds(clock.now()), "1970-01-01T00:01:30Z");
    }
}
