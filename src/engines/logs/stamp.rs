//! Times in log lines.
//!
//! Owns the shapes in which engines and the kubelet write a time. Must not look at a clock: the year that vLLM leaves out is
//! taken from `now`. A time without a zone is read as UTC, which is what containers run in unless somebody changed it.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// How many bytes of a line are searched for a time.
const HEAD: usize = 160;

/// The time of a line and the line without the kubelet's stamp. Shapes, the most trusted first: the kubelet's RFC 3339 stamp at
/// the very start; `2026-11-30 23:01:02` (SGLang, Python logging); `11-30 23:01:02` (vLLM), whose year is that of `now`.
pub(super) fn split(line: &str, now: Timestamp) -> (Option<Timestamp>, &str) {
    let line = line.trim_start();
    if let Some((word, rest)) = line.split_once(' ')
        && word.contains('T')
        && let Ok(at) = word.parse::<Timestamp>()
    {
        return (Some(at), rest);
    }
    (own_stamp(line, now), line)
}

/// The first time that the engine itself wrote near the start of the line.
fn own_stamp(line: &str, now: Timestamp) -> Option<Timestamp> {
    let head: Vec<u8> = line.bytes().take(HEAD).collect();
    // A stamp has two colons eight bytes before its end: look for `HH:MM:SS`, then for the date before it.
    (0..head.len()).find_map(|i| {
        let time = head.get(i..i + 8)?;
        let (hour, minute, second) = clock(time)?;
        let before = head.get(..i)?;
        let before = before.strip_suffix(b" ").or_else(|| before.strip_suffix(b"T"))?;
        let month_day = before.get(before.len().checked_sub(5)?..)?;
        let (month, day) = pair(month_day, b'-').or_else(|| pair(month_day, b'/'))?;
        let year = before
            .len()
            .checked_sub(10)
            .and_then(|start| before.get(start..start + 5))
            .filter(|text| matches!(text.last(), Some(b'-' | b'/')))
            .and_then(|text| number(text.get(..4)?));
        match year {
            Some(year) => civil(i16::try_from(year).ok()?, month, day, hour, minute, second),
            None => without_year(month, day, hour, minute, second, now),
        }
    })
}

/// A time without a year: the latest one that is not more than a day ahead of `now` (clocks differ, and a year ends).
fn without_year(month: i8, day: i8, hour: i8, minute: i8, second: i8, now: Timestamp) -> Option<Timestamp> {
    let this = now.to_zoned(TimeZone::UTC).year();
    let limit = now.as_second().saturating_add(86_400);
    [this.saturating_add(1), this, this.saturating_sub(1)]
        .into_iter()
        .filter_map(|year| civil(year, month, day, hour, minute, second))
        .find(|at| at.as_second() <= limit)
}

fn civil(year: i16, month: i8, day: i8, hour: i8, minute: i8, second: i8) -> Option<Timestamp> {
    let date = Date::new(year, month, day).ok()?;
    let time = jiff::civil::Time::new(hour, minute, second, 0).ok()?;
    TimeZone::UTC.to_timestamp(date.to_datetime(time)).ok()
}

fn clock(text: &[u8]) -> Option<(i8, i8, i8)> {
    let (hour, minute) = pair(text.get(..5)?, b':')?;
    (text.get(5) == Some(&b':')).then_some(())?;
    let second = i8::try_from(number(text.get(6..8)?)?).ok()?;
    Some((hour, minute, second))
}

fn pair(text: &[u8], between: u8) -> Option<(i8, i8)> {
    (text.len() == 5 && text.get(2) == Some(&between)).then_some(())?;
    let of = |range: std::ops::Range<usize>| i8::try_from(number(text.get(range)?)?).ok();
    Some((of(0..2)?, of(3..5)?))
}

fn number(text: &[u8]) -> Option<u16> {
    text.iter().all(u8::is_ascii_digit).then_some(())?;
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const NOW: &str = "2026-11-12T10:00:00Z";

    #[rstest]
    #[case(
        "2026-11-12T09:59:48.530217000Z (EngineCore_DP0 pid=212) INFO 11-12 09:50:00 [core.py:101] x",
        Some("2026-11-12T09:59:48.530217Z")
    )]
    #[case("INFO 11-12 09:59:40 [loggers.py] Engine 000", Some("2026-11-12T09:59:40Z"))]
    #[case("(Worker_TP0 pid=33) INFO 12-31 23:59:40 [x.py:1] y", Some("2025-12-31T23:59:40Z"))]
    #[case("(EngineCore pid=1) WARNING 11-13 01:00:00 [x.py:1] a clock ahead", Some("2026-11-13T01:00:00Z"))]
    #[case("[2026-11-12 09:58:51] Load weight end.", Some("2026-11-12T09:58:51Z"))]
    #[case("[2026-11-12 09:58:51 DP0 TP1 PP0 EP0] Load weight end.", Some("2026-11-12T09:58:51Z"))]
    #[case("2026-11-12 09:46:26 INFO Initializing", Some("2026-11-12T09:46:26Z"))]
    #[case("2026-11-12 09:46:26,123 - INFO - x", Some("2026-11-12T09:46:26Z"))]
    #[case("2026/11/12 09:46:26 x", Some("2026-11-12T09:46:26Z"))]
    #[case("Loading safetensors checkpoint shards:  43% Completed | 26/60 [03:07<04:05,  7.21s/it]", None)]
    #[case("INFO 13-40 09:59:40 [x] no such day", None)]
    #[case("INFO 02-29 09:59:40 [x] no such day in these years", None)]
    #[case("", None)]
    #[case("11-12 1", None)]
    fn stamps(#[case] line: &str, #[case] wanted: Option<&str>) {
        let now = NOW.parse().unwrap();
        assert_eq!(split(line, now).0, wanted.map(|text| text.parse().unwrap()));
    }

    #[test]
    fn the_new_year_is_not_a_year_ahead() {
        let now = "2027-01-01T00:00:10Z".parse().unwrap();
        assert_eq!(split("INFO 12-31 23:59:58 [x]", now).0, Some("2026-12-31T23:59:58Z".parse().unwrap()));
        let now = "2026-12-31T23:59:58Z".parse().unwrap();
        assert_eq!(split("INFO 01-01 00:00:03 [x]", now).0, Some("2027-01-01T00:00:03Z".parse().unwrap()));
    }

    #[test]
    fn the_kubelets_stamp_is_taken_off() {
        let (_, rest) = split("2026-11-12T09:59:48Z Loading", NOW.parse().unwrap());
        assert_eq!(rest, "Loading");
    }
}
