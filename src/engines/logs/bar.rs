//! Progress in log lines: bars (`62%|…| 23/37 [02:31<01:32, 6.59s/it]`) and counts in words (`downloaded 61%`, `12 of 41 files`).
//!
//! Owns the shapes. Must not decide what a bar counts: see [`super::phrases`].

/// One state of one progress bar.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// The text before it, which says what it counts.
    pub label: String,
    /// Share done, 0..1.
    pub share: f64,
    /// The count as written: `23/37`, `2.25G/4.98G`, `61%`.
    pub count: String,
    /// Seconds since it began, where it says so.
    pub elapsed_s: Option<f64>,
    /// Seconds left, where it says so.
    pub left_s: Option<f64>,
}

impl Bar {
    /// Seconds that the whole will have taken: what is left by the bar itself, else by its share.
    pub fn whole_s(&self) -> Option<f64> {
        let elapsed = self.elapsed_s?;
        match self.left_s {
            Some(left) => Some(elapsed + left),
            None => (self.share > 0.0).then(|| elapsed / self.share),
        }
    }
}

/// All bars in one piece of text, in order. A bar that was redrawn with carriage returns stands many times in one line.
pub(super) fn bars(text: &str) -> Vec<Bar> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(open) = text.get(from..).and_then(|rest| rest.find('[')).map(|i| from + i) {
        let Some(close) = text.get(open..).and_then(|rest| rest.find(']')).map(|i| open + i) else { break };
        let (head, timing) = (text.get(from..open).unwrap_or_default(), text.get(open + 1..close).unwrap_or_default());
        match timing_of(timing).zip(count_of(head)) {
            Some(((elapsed, left), (label, count, share))) => {
                found.push(Bar { label, share, count, elapsed_s: Some(elapsed), left_s: left });
                from = close + 1;
            }
            // Not a bar: `[file.py:42]`. Text before it may still be the label of the next one.
            None => match timing.contains('[') {
                true => from = open + 1,
                false => from = close + 1,
            },
        }
    }
    found
}

/// `02:31<01:32, 6.59s/it` → 151 and 92; `00:00<?, ?it/s` → 0 and nothing.
fn timing_of(text: &str) -> Option<(f64, Option<f64>)> {
    let (elapsed, rest) = text.split_once('<')?;
    let left = rest.split(',').next().unwrap_or_default();
    Some((clock_s(elapsed.trim())?, clock_s(left.trim())))
}

/// Seconds of `08:38`, `1:02:03`, `2 days, 1:02:03`.
pub(super) fn clock_s(text: &str) -> Option<f64> {
    let (days, clock) = match text.split_once("day") {
        Some((days, rest)) => (days.trim().parse::<f64>().ok()?, rest.trim_start_matches('s').trim_start_matches(',').trim()),
        None => (0.0, text),
    };
    let parts: Vec<f64> = clock
        .split(':')
        .map(|part| (!part.is_empty() && part.bytes().all(|b| b.is_ascii_digit())).then(|| part.parse().ok()).flatten())
        .collect::<Option<_>>()?;
    (2..=3).contains(&parts.len()).then(|| parts.iter().fold(0.0, |sum, part| sum * 60.0 + part) + days * 86_400.0)
}

/// What stands before the bracket: label, count as written, share.
fn count_of(head: &str) -> Option<(String, String, f64)> {
    let head = head.trim_end();
    let start = head.rfind(|c: char| c.is_whitespace() || c == '|').map_or(0, |i| i + char_len(head, i));
    let pair = head.get(start..).unwrap_or_default();
    let share = pair_share(pair);
    let percent = head.rfind('%').and_then(|i| Some((i, percent_before(head, i)?)));
    let label_end = percent.map_or(start, |(i, (_, digits))| i.saturating_sub(digits));
    let label = head.get(..label_end).unwrap_or_default().trim().trim_end_matches([':', '|']).trim().to_owned();
    match (share, percent) {
        (Some(share), _) => Some((label, pair.to_owned(), share)),
        (None, Some((_, (share, _)))) => Some((label, format!("{}%", share * 100.0), share)),
        (None, None) => None,
    }
}

fn char_len(text: &str, at: usize) -> usize {
    text.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8)
}

/// `23/37` → 0.62, `2.25G/4.98G` → 0.45.
fn pair_share(pair: &str) -> Option<f64> {
    let (done, all) = pair.split_once('/')?;
    let (done, all) = (amount(done)?, amount(all)?);
    (all > 0.0 && done <= all).then(|| done / all)
}

/// A number with an optional unit of bytes: `37`, `4.98G`, `12.3GiB`, `500 MB`.
pub(super) fn amount(text: &str) -> Option<f64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != ',').unwrap_or(text.len());
    let value: f64 = text.get(..end)?.replace(',', "").parse().ok()?;
    let unit = text.get(end..)?.trim().trim_end_matches("ytes").trim_end_matches("yte");
    let binary = unit.contains('i');
    let base: f64 = if binary { 1024.0 } else { 1000.0 };
    let power = match unit.chars().next().map(|c| c.to_ascii_lowercase()) {
        None | Some('b') => 0,
        Some('k') => 1,
        Some('m') => 2,
        Some('g') => 3,
        Some('t') => 4,
        Some(_) => return None,
    };
    matches!(unit.to_ascii_lowercase().get(1..), None | Some("" | "b" | "ib" | "i")).then_some(())?;
    Some(value * base.powi(power)).filter(|value| value.is_finite())
}

/// The share that ends at a percent sign, and how many bytes its digits take.
fn percent_before(text: &str, sign: usize) -> Option<(f64, usize)> {
    let head = text.get(..sign)?;
    let digits = head.len() - head.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').len();
    let value: f64 = head.get(head.len() - digits..)?.parse().ok()?;
    (0.0..=100.0).contains(&value).then_some((value / 100.0, digits))
}

/// A count in words, without a bar: `downloaded 61%`, `12/41 files`, `12 of 41`, `41.2 GiB / 130.4 GiB`, `45873209344 bytes of
/// 140000000000`, and with no total `copied 41.2 GiB`. The share is absent in the last.
pub(super) fn count_in_words(text: &str) -> Option<(String, Option<f64>)> {
    let words: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ',' | ';' | '[' | ']'))
        .map(|word| word.trim_end_matches(['.', ':']).trim_start_matches('~'))
        .filter(|w| !w.is_empty())
        .collect();
    if let Some(found) = words.iter().find_map(|word| {
        let share = word.contains('/').then(|| pair_share(word)).flatten()?;
        Some(((*word).to_owned(), Some(share)))
    }) {
        return Some(found);
    }
    let spaced = words.join(" ").replace('/', " / ");
    let apart: Vec<&str> = spaced.split_whitespace().collect();
    if let Some(found) = (0..apart.len()).find_map(|middle| spelt_pair(&apart, middle)) {
        return Some(found);
    }
    if let Some(found) = words.iter().find_map(|word| {
        let (share, _) = percent_before(word, word.find('%')?)?;
        Some(((*word).to_owned(), Some(share)))
    }) {
        return Some(found);
    }
    words.iter().enumerate().find_map(|(i, word)| {
        let (value, used, unit) = number_at(&words, i)?;
        (unit && value >= 0.0).then(|| (words.get(i..i + used).map_or((*word).to_owned(), |w| w.join(" ")), None))
    })
}

/// `12 of 41`, `41.2 GiB of 130.4 GiB`, `41.2 GiB / 130.4 GiB`.
fn spelt_pair(words: &[&str], middle: usize) -> Option<(String, Option<f64>)> {
    matches!(words.get(middle), Some(&("of" | "/" | "out"))).then_some(())?;
    let after = if words.get(middle + 1) == Some(&"of") { middle + 2 } else { middle + 1 };
    let (all, used, _) = number_at(words, after)?;
    let (start, done) = [3, 2, 1].into_iter().find_map(|back| {
        let start = middle.checked_sub(back)?;
        let (value, used, _) = number_at(words, start)?;
        // `25 files of 41`: a word between number and `of` that is no unit.
        (used <= back && back - used <= 1).then_some((start, value))
    })?;
    let share = (all > 0.0 && done <= all).then(|| done / all)?;
    Some((words.get(start..after + used)?.join(" "), Some(share)))
}

/// A number at a word, how many words it takes with its unit, and whether it has one.
fn number_at(words: &[&str], at: usize) -> Option<(f64, usize, bool)> {
    let word = words.get(at)?;
    if let Ok(value) = word.replace(',', "").parse::<f64>() {
        if !value.is_finite() || !word.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        return match words.get(at + 1).and_then(|unit| amount(&format!("{value}{unit}"))) {
            Some(whole) => Some((whole, 2, true)),
            None => Some((value, 1, false)),
        };
    }
    word.starts_with(|c: char| c.is_ascii_digit()).then_some(())?;
    amount(word).map(|value| (value, 1, true))
}

/// Seconds of an `ETA 00:05:20` or `eta 5m20s` in a line.
pub(super) fn eta_in_words(lower: &str) -> Option<f64> {
    let at = lower.find("eta")?;
    let before_is_word = lower.get(..at)?.chars().next_back().is_some_and(char::is_alphanumeric);
    if before_is_word {
        return None;
    }
    let rest = lower.get(at + 3..)?.trim_start_matches([':', '=', ' ']);
    let word = rest.split([' ', ',', ')', ']', '}']).next()?;
    clock_s(word).or_else(|| {
        let mut sum = None;
        let mut digits = String::new();
        for c in word.chars() {
            match c {
                '0'..='9' | '.' => digits.push(c),
                'h' | 'm' | 's' => {
                    let value: f64 = digits.parse().ok()?;
                    digits.clear();
                    sum = Some(
                        sum.unwrap_or(0.0)
                            + value
                                * if c == 'h' {
                                    3600.0
                                } else if c == 'm' {
                                    60.0
                                } else {
                                    1.0
                                },
                    );
                }
                _ => return None,
            }
        }
        sum.filter(|_| digits.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("Loading safetensors checkpoint shards:  62% Completed | 23/37 [02:31<01:32,  6.59s/it]", "Loading safetensors checkpoint shards", "23/37", 23.0 / 37.0, 151.0, Some(92.0))]
    #[case("Fetching 41 files:  61%|######1   | 25/41 [13:30<08:38, 32.4s/it]", "Fetching 41 files", "25/41", 25.0 / 41.0, 810.0, Some(518.0))]
    #[case(
        "model-00001-of-00037.safetensors:  45%|████▌     | 2.25G/5.00G [00:30<00:36, 74.9MB/s]",
        "model-00001-of-00037.safetensors",
        "2.25G/5.00G",
        0.45,
        30.0,
        Some(36.0)
    )]
    #[case(
        "Loading safetensors checkpoint shards:   0% Completed | 0/37 [00:00<?, ?it/s]",
        "Loading safetensors checkpoint shards",
        "0/37",
        0.0,
        0.0,
        None
    )]
    #[case(
        "(Worker pid=1) INFO [x.py:3] Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):  50%|█████     | 33/66 [1:00:03<1:00:02, 12.0it/s]",
        "Capturing CUDA graphs (mixed prefill-decode, PIECEWISE)",
        "33/66",
        0.5,
        3603.0,
        Some(3602.0)
    )]
    fn one_bar(
        #[case] line: &str,
        #[case] label: &str,
        #[case] count: &str,
        #[case] share: f64,
        #[case] elapsed: f64,
        #[case] left: Option<f64>,
    ) {
        let found = bars(line);
        let bar = found.last().unwrap();
        assert_eq!((bar.label.as_str(), bar.count.as_str(), bar.elapsed_s, bar.left_s), (label, count, Some(elapsed), left));
        assert!((bar.share - share).abs() < 1e-9);
    }

    #[test]
    fn a_line_with_the_whole_history_gives_all_states() {
        let line =
            "shards:   0%|  | 0/2 [00:00<?, ?it/s]\rshards:  50%|# | 1/2 [00:05<00:05, 5s/it]shards: 100%|##| 2/2 [00:10<00:00, 5s/it]";
        let counts: Vec<String> = bars(line).into_iter().map(|bar| bar.count).collect();
        assert_eq!(counts, ["0/2", "1/2", "2/2"]);
    }

    #[rstest]
    #[case("INFO [file.py:42] nothing to see [a<b]")]
    #[case("[[[[<]]]")]
    #[case("5/0 [00:01<00:02]")]
    #[case("")]
    fn no_bar(#[case] line: &str) {
        assert_eq!(bars(line), []);
    }

    #[rstest]
    #[case("downloaded 61%", "61%", Some(0.61))]
    #[case("INFO downloaded 61.5% of the model", "61.5%", Some(0.615))]
    #[case("Downloaded 25/50 files", "25/50", Some(0.5))]
    #[case("downloaded 25 of 50 files", "25 of 50", Some(0.5))]
    #[case("downloaded 25 files of 50", "25 files of 50", Some(0.5))]
    #[case("Completed 41.5 GiB/83.0 GiB (350 MiB/s) with 3 file(s) remaining", "41.5 GiB / 83.0 GiB", Some(0.5))]
    #[case("Copying /mnt/models/a to /data, 7 of 14 files", "7 of 14", Some(0.5))]
    #[case("downloaded 41.5 GiB / 83 GiB", "41.5 GiB / 83 GiB", Some(0.5))]
    #[case("downloaded 5000000 bytes of 10000000", "5000000 bytes of 10000000", Some(0.5))]
    #[case("copied 41.2 GiB so far", "41.2 GiB", None)]
    #[case("copied 41.2GB", "41.2GB", None)]
    fn words(#[case] line: &str, #[case] count: &str, #[case] share: Option<f64>) {
        let (found, value) = count_in_words(line).unwrap();
        assert_eq!((found.as_str(), value.is_some()), (count, share.is_some()));
        assert!((value.unwrap_or(0.0) - share.unwrap_or(0.0)).abs() < 1e-9);
    }

    #[rstest]
    #[case("nothing here")]
    #[case("/mnt/models of /data")]
    #[case("NaN of inf")]
    fn no_words(#[case] line: &str) {
        assert_eq!(count_in_words(line), None);
    }

    #[rstest]
    #[case("27% done 100 mib/s eta 00:05:20", Some(320.0))]
    #[case("eta 5m20s", Some(320.0))]
    #[case("metadata 12", None)]
    #[case("eta soon", None)]
    fn etas(#[case] line: &str, #[case] wanted: Option<f64>) {
        assert_eq!(eta_in_words(line), wanted);
    }

    #[test]
    fn whole() {
        let bar = Bar { label: String::new(), share: 0.5, count: String::new(), elapsed_s: Some(100.0), left_s: None };
        assert_eq!(bar.whole_s(), Some(200.0));
    }
}
