//! Numbers of a sample line: its value and its timestamp.

/// A sample's value: what Prometheus and Python take, `NaN`, `Inf` and `Infinity` in any case and with a sign included.
/// What is too big for a double becomes an infinity (`1e400`), integers beyond 2^53 become the nearest double.
pub(super) fn value(token: &[u8]) -> Option<f64> {
    std::str::from_utf8(token).ok()?.parse().ok()
}

/// A timestamp as written; what it means depends on the page's format, which is known at its end only.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Stamp {
    /// An integer: milliseconds in the text format, seconds in OpenMetrics.
    Whole(i64),
    /// A decimal number: seconds, since only OpenMetrics writes these.
    Seconds(f64),
}

impl Stamp {
    /// Reads it; `None` if it is no finite number.
    pub(super) fn read(token: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(token).ok()?;
        if token.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E')) {
            let seconds = text.parse::<f64>().ok()?;
            seconds.is_finite().then_some(Stamp::Seconds(seconds))
        } else {
            text.parse().ok().map(Stamp::Whole)
        }
    }

    /// Unix milliseconds, given the page's format; saturates.
    pub(super) fn millis(self, openmetrics: bool) -> i64 {
        match self {
            Stamp::Whole(seconds) if openmetrics => seconds.saturating_mul(1000),
            Stamp::Whole(millis) => millis,
            // A float cast saturates.
            Stamp::Seconds(seconds) => (seconds * 1000.0).round() as i64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("1", Some(1.0))]
    #[case("-3e3", Some(-3000.0))]
    #[case("08", Some(8.0))]
    #[case(".5", Some(0.5))]
    #[case("1e400", Some(f64::INFINITY))]
    #[case("+Inf", Some(f64::INFINITY))]
    #[case("-inf", Some(f64::NEG_INFINITY))]
    #[case("Infinity", Some(f64::INFINITY))]
    #[case("18446744073709551615", Some(18_446_744_073_709_552_000.0))]
    #[case("1e-320", Some(1e-320))]
    #[case("0x10", None)]
    #[case("1_000", None)]
    #[case("", None)]
    #[case("1,5", None)]
    fn values(#[case] text: &str, #[case] wanted: Option<f64>) {
        assert_eq!(value(text.as_bytes()), wanted);
    }

    #[test]
    fn nan_in_any_case() {
        for text in ["NaN", "nan", "NAN", "+NaN", "-nan"] {
            assert!(value(text.as_bytes()).is_some_and(f64::is_nan), "{text}");
        }
    }

    #[rstest]
    #[case("1395066363000", false, Some(1_395_066_363_000))]
    #[case("1395066363", true, Some(1_395_066_363_000))]
    #[case("1395066363.250", true, Some(1_395_066_363_250))]
    #[case("1395066363.250", false, Some(1_395_066_363_250))]
    #[case("1.7e9", true, Some(1_700_000_000_000))]
    #[case("-3982045", false, Some(-3_982_045))]
    #[case("9223372036854775807", true, Some(i64::MAX))]
    #[case("9223372036854775808", false, None)]
    #[case("NaN", false, None)]
    #[case("1e999", false, None)]
    #[case("soon", false, None)]
    fn stamps(#[case] text: &str, #[case] openmetrics: bool, #[case] wanted: Option<i64>) {
        assert_eq!(Stamp::read(text.as_bytes()).map(|stamp| stamp.millis(openmetrics)), wanted);
    }
}
