//! Instants and durations in words. Owns no clock: the present is always an argument.

use jiff::Timestamp;

/// Reads an RFC 3339 instant as Kubernetes writes it.
pub fn instant(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}

/// Whole seconds from `earlier` to `later`; negative when `later` lies before.
pub fn seconds_between(earlier: Timestamp, later: Timestamp) -> i64 {
    later.as_second().saturating_sub(earlier.as_second())
}

/// A span for people: `42 s`, `4 min`, `4 min 10 s`, `3 h 5 min`, `9 d 4 h`. Negative spans are shown as `0 s`.
pub fn span(seconds: i64) -> String {
    let s = seconds.max(0);
    let two = |a: i64, x: &str, b: i64, y: &str| if b == 0 { format!("{a} {x}") } else { format!("{a} {x} {b} {y}") };
    match s {
        0..60 => format!("{s} s"),
        60..600 => two(s / 60, "min", s % 60, "s"),
        600..3600 => format!("{} min", s / 60),
        3600..86_400 => two(s / 3600, "h", s % 3600 / 60, "min"),
        _ => two(s / 86_400, "d", s % 86_400 / 3600, "h"),
    }
}

/// The same in one narrow column: `42s`, `4m`, `3h`, `9d`.
pub fn short_span(seconds: i64) -> String {
    let s = seconds.max(0);
    match s {
        0..120 => format!("{s}s"),
        120..7200 => format!("{}m", s / 60),
        7200..172_800 => format!("{}h", s / 3600),
        _ => format!("{}d", s / 86_400),
    }
}

/// The time of day of an instant in UTC, `10:04:05`.
pub fn clock(at: Timestamp) -> String {
    let of_day = at.as_second().rem_euclid(86_400);
    format!("{:02}:{:02}:{:02}", of_day / 3600, of_day % 3600 / 60, of_day % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(-5, "0 s", "0s")]
    #[case(59, "59 s", "59s")]
    #[case(60, "1 min", "60s")]
    #[case(250, "4 min 10 s", "4m")]
    #[case(660, "11 min", "11m")]
    #[case(11_100, "3 h 5 min", "3h")]
    #[case(86_400 * 3, "3 d", "3d")]
    fn spans(#[case] seconds: i64, #[case] long: &str, #[case] short: &str) {
        assert_eq!((span(seconds).as_str(), short_span(seconds).as_str()), (long, short));
    }

    #[test]
    fn instants() {
        let a = instant("2026-11-12T09:59:00Z").unwrap();
        let b = instant("2026-11-12T10:00:05.9Z").unwrap();
        assert_eq!(seconds_between(a, b), 65);
        assert_eq!(clock(b), "10:00:05");
        assert_eq!(instant("yesterday"), None);
    }
}
