//! Ages as Kubernetes shortens them.

use jiff::Timestamp;
use serde_json::Value;

/// The age of a time in an object; `<unknown>` when it is none.
pub(super) fn of(time: &Value, now: Timestamp) -> String {
    match time.as_str().and_then(|text| text.parse::<Timestamp>().ok()) {
        Some(at) => short(now.as_second() - at.as_second()),
        None => "<unknown>".to_owned(),
    }
}

/// `k8s.io/apimachinery/pkg/util/duration.HumanDuration`.
pub(super) fn short(seconds: i64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |whole: i64, unit: &str, rest: i64, small: &str| match rest {
        0 => format!("{whole}{unit}"),
        rest => format!("{whole}{unit}{rest}{small}"),
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => two(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => two(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => two(days, "d", hours % 24, "h"),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => two(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(0, "0s")]
    #[case(119, "119s")]
    #[case(120, "2m")]
    #[case(125, "2m5s")]
    #[case(3600, "60m")]
    #[case(4 * 3600 + 120, "4h2m")]
    #[case(10 * 86400, "10d")]
    #[case(3 * 86400 + 3600, "3d1h")]
    fn ages(#[case] seconds: i64, #[case] shown: &str) {
        assert_eq!(short(seconds), shown);
    }
}
