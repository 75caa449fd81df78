//! Histograms put together from a page, and their arithmetic: what happened between two scrapes, several
//! engines as one, quantiles. Owns no metric names; a histogram is one because its TYPE line says so.
use super::kind::{Kind, Role};
use super::page::{Page, Sample};
use std::collections::BTreeMap;

/// Labels of a series, by name. Untrusted text.
pub type LabelSet = BTreeMap<String, String>;

/// One cumulative bucket.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bucket {
    /// Upper bound, included; the last one of a sound histogram is +Inf.
    pub le: f64,
    /// Observations up to that bound.
    pub count: f64,
}

/// A histogram of one label set. From one page it counts since the engine's start; use [`Histogram::delta`] for now.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Histogram {
    /// Sorted by bound, each bound once, no NaN bound.
    pub buckets: Vec<Bucket>,
    /// Sum of all observations, in the metric's unit, if the page has it.
    pub sum: Option<f64>,
    /// Number of all observations as `_count` says, if the page has it. See [`Histogram::observations`].
    pub count: Option<f64>,
}

/// The histograms of a family.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Histograms {
    /// By label set, without `le`.
    pub by_labels: BTreeMap<LabelSet, Histogram>,
    /// Samples of the family that have no place in a histogram: a bucket without a readable `le`, a bound or sum or
    /// count that is there twice (the first one holds), or a bare sample.
    pub left_out: usize,
}

impl Page {
    /// The histograms of a family, one a label set; none if its TYPE is not `histogram`, whatever its names look like.
    /// (SGLang's `sglang:routing_key_running_req_count` has `le` and is a gauge.)
    pub fn histograms(&self, family: &str) -> Histograms {
        let mut out = Histograms::default();
        let Some(family) = self.describe(family).filter(|family| family.kind() == Kind::Histogram) else {
            return out;
        };
        // Samples of one label set mostly stand together (a page need not keep to that), and comparing with the one
        // before is much cheaper than a key of owned strings for each bucket.
        let mut before: Option<(Sample<'_>, &mut Histogram)> = None;
        for sample in family.samples() {
            let histogram = match before.take() {
                Some((last, histogram)) if series_labels(last).eq(series_labels(sample)) => histogram,
                _ => {
                    let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
                    out.by_labels.entry(series_labels(sample).map(owned).collect()).or_default()
                }
            };
            if !histogram.add(sample) {
                out.left_out = out.left_out.saturating_add(1);
            }
            before = Some((sample, histogram));
        }
        for histogram in out.by_labels.values_mut() {
            histogram.buckets.sort_by(|a, b| a.le.total_cmp(&b.le));
            let before = histogram.buckets.len();
            // `sort_by` is stable, so of two equal bounds ("1" and "1.0") the first on the page stays.
            histogram.buckets.dedup_by(|b, a| a.le == b.le);
            out.left_out = out.left_out.saturating_add(before.saturating_sub(histogram.buckets.len()));
        }
        out.by_labels.retain(|_, histogram| *histogram != Histogram::default());
        out
    }
}

/// The labels that tell one histogram of a family from another.
fn series_labels(sample: Sample<'_>) -> impl Iterator<Item = (&str, &str)> {
    let is_bucket = sample.role() == Role::Bucket;
    sample.labels().filter(move |(name, _)| !is_bucket || *name != "le")
}

/// Fills an empty slot; says whether it was empty.
fn put_first(slot: &mut Option<f64>, value: f64) -> bool {
    let empty = slot.is_none();
    slot.get_or_insert(value);
    empty
}

impl Histogram {
    /// Takes in a sample of its label set; says whether it has a place here.
    fn add(&mut self, sample: Sample<'_>) -> bool {
        match sample.role() {
            Role::Bucket => {
                let bound = sample.label("le").and_then(|le| le.parse::<f64>().ok()).filter(|le| !le.is_nan());
                let Some(le) = bound else { return false };
                self.buckets.push(Bucket { le, count: sample.value() });
                true
            }
            Role::Sum => put_first(&mut self.sum, sample.value()),
            Role::Count => put_first(&mut self.count, sample.value()),
            Role::Value | Role::Created => false,
        }
    }

    /// How many observations there are: the +Inf bucket, else `_count`; `None` if there is neither, or it is NaN.
    pub fn observations(&self) -> Option<f64> {
        self.top().or(self.count).filter(|count| !count.is_nan())
    }

    /// The count of the +Inf bucket.
    fn top(&self) -> Option<f64> {
        self.buckets.last().filter(|bucket| bucket.le == f64::INFINITY).map(|bucket| bucket.count)
    }

    /// Mean of the observations in the metric's unit; `None` without a sum or without observations.
    pub fn mean(&self) -> Option<f64> {
        let (sum, count) = (self.sum?, self.observations()?);
        (count > 0.0).then_some(sum / count)
    }

    /// What was observed since `older`, which is the same series of an earlier scrape.
    ///
    /// `None` if it cannot be told: a count is lower than before or NaN, or the bounds changed. Both mean that the
    /// engine restarted in between; the older page says nothing about this one then. A restart after which
    /// all counts are higher again cannot be seen from here. A sum that is missing on one side is missing in the result.
    pub fn delta(&self, older: &Histogram) -> Option<Histogram> {
        if self.buckets.len() != older.buckets.len() || self.count.is_some() != older.count.is_some() {
            return None;
        }
        let grown = |new: f64, old: f64| Some(new - old).filter(|grown| *grown >= 0.0);
        let pairs = self.buckets.iter().zip(&older.buckets);
        let buckets: Option<Vec<Bucket>> = pairs
            .map(|(new, old)| {
                let count = grown(new.count, old.count)?;
                (new.le == old.le).then_some(Bucket { le: new.le, count })
            })
            .collect();
        let count = match (self.count, older.count) {
            (Some(new), Some(old)) => Some(grown(new, old)?),
            _ => None,
        };
        // A sum may fall by itself where observations can be negative, so it does not tell a restart.
        let sum = self.sum.zip(older.sum).map(|(new, old)| new - old);
        Some(Histogram { buckets: buckets?, sum, count })
    }

    /// Both as one: the engines of a replica, the replicas of a role.
    ///
    /// Cumulative counts add up at bounds that both have, so other bounds are left out; engines of two versions with
    /// other buckets give a coarser histogram, not a wrong one. A sum or count that one side lacks is missing then.
    /// An empty histogram (`Histogram::default()`) changes nothing, so a fold may begin with it.
    pub fn merge(&self, other: &Histogram) -> Histogram {
        if *self == Histogram::default() {
            return other.clone();
        }
        if *other == Histogram::default() {
            return self.clone();
        }
        let mut buckets = Vec::with_capacity(self.buckets.len());
        let mut theirs = other.buckets.iter().peekable();
        for ours in &self.buckets {
            while theirs.next_if(|bucket| bucket.le < ours.le).is_some() {}
            if let Some(same) = theirs.next_if(|bucket| bucket.le == ours.le) {
                buckets.push(Bucket { le: ours.le, count: ours.count + same.count });
            }
        }
        let add = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a + b);
        Histogram { buckets, sum: add(self.sum, other.sum), count: add(self.count, other.count) }
    }

    /// The value below which a share `q` (0 to 1) of the observations lies, in the metric's unit, as Prometheus'
    /// `histogram_quantile` has it: observations are taken to lie evenly within a bucket, and the first bucket to begin
    /// at 0 if its bound is above 0.
    ///
    /// * In the +Inf bucket: the highest finite bound, so "at least this".
    /// * In a first bucket whose bound is 0 or less: that bound.
    /// * Counts that fall from bucket to bucket (a page cut between two updates) are raised to the one before.
    /// * `None` without observations, without a +Inf bucket, with only that one, with counts that are no finite number,
    ///   or with a `q` outside 0 to 1 (there Prometheus gives NaN or an infinity).
    /// * For `q` = 0: the lower end of the first bucket that is not empty (where Prometheus may give NaN).
    pub fn quantile(&self, q: f64) -> Option<f64> {
        if !(0.0..=1.0).contains(&q) || self.top().is_none() || self.buckets.len() < 2 {
            return None;
        }
        if self.buckets.iter().any(|bucket| !bucket.count.is_finite()) {
            return None;
        }
        let counts = self.buckets.iter().scan(0.0_f64, |most, bucket| {
            *most = most.max(bucket.count);
            Some((bucket.le, *most))
        });
        let total = self.buckets.iter().fold(0.0_f64, |most, bucket| most.max(bucket.count));
        if total <= 0.0 {
            return None;
        }
        let rank = q * total;
        let mut before: Option<(f64, f64)> = None;
        for (le, count) in counts {
            let (start, below) = before.unwrap_or((0.0, 0.0));
            if count >= rank && count > below {
                return Some(match before {
                    Some(_) if le == f64::INFINITY => start,
                    None if le <= 0.0 => le,
                    _ => start + (le - start) * ((rank - below) / (count - below)),
                });
            }
            before = Some((le, count));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::exposition::{Filter, read};
    use rstest::rstest;

    fn one(buckets: &[(f64, f64)]) -> Histogram {
        let buckets: Vec<Bucket> = buckets.iter().map(|(le, count)| Bucket { le: *le, count: *count }).collect();
        let count = buckets.last().map(|bucket| bucket.count);
        Histogram { buckets, sum: Some(10.0), count }
    }

    const INF: f64 = f64::INFINITY;

    #[test]
    fn are_put_together_by_label_set_in_any_order() {
        let page = read(
            concat!(
                "# TYPE h histogram\nh_count{e=\"1\"} 4\nh_bucket{le=\"+Inf\",e=\"1\"} 4\nh_bucket{e=\"0\",le=\"1\"} 1\n",
                "h_bucket{le=\"2.5\",e=\"1\"} 3\nh_bucket{e=\"0\",le=\"+Inf\"} 2\nh_sum{e=\"1\"} 9\nh_bucket{e=\"0\",le=\"1.0\"} 7\n",
                "h_bucket{e=\"0\",le=\"NaN\"} 1\nh_bucket{e=\"2\",le=\"\"} 1\nh_sum{e=\"1\"} 11\nh{e=\"0\"} 5\n",
            )
            .as_bytes(),
            &Filter::All,
        );
        let got = page.histograms("h");
        let key = |e: &str| LabelSet::from([("e".to_owned(), e.to_owned())]);
        let zero = Histogram { sum: None, count: None, ..one(&[(1.0, 1.0), (INF, 2.0)]) };
        let first = Histogram { sum: Some(9.0), ..one(&[(2.5, 3.0), (INF, 4.0)]) };
        assert_eq!(got.by_labels, BTreeMap::from([(key("0"), zero), (key("1"), first)]));
        assert_eq!(got.left_out, 5);
    }

    #[rstest]
    #[case(&[(1.0, 2.0), (2.0, 4.0), (INF, 4.0)], 0.5, Some(1.0))]
    #[case(&[(1.0, 2.0), (2.0, 4.0), (INF, 4.0)], 0.75, Some(1.5))]
    #[case(&[(1.0, 2.0), (2.0, 4.0), (INF, 4.0)], 0.25, Some(0.5))]
    #[case(&[(1.0, 2.0), (2.0, 4.0), (INF, 4.0)], 1.0, Some(2.0))]
    #[case(&[(1.0, 2.0), (2.0, 4.0), (INF, 4.0)], 0.0, Some(0.0))]
    #[case(&[(1.0, 0.0), (2.0, 4.0), (INF, 4.0)], 0.0, Some(1.0))] // the first bucket is empty
    #[case(&[(1.0, 0.0), (2.0, 0.0), (INF, 4.0)], 0.5, Some(2.0))] // only known to be at least 2
    #[case(&[(1.0, 2.0), (2.0, 2.0), (INF, 4.0)], 0.9, Some(2.0))]
    #[case(&[(-1.0, 2.0), (2.0, 4.0), (INF, 4.0)], 0.25, Some(-1.0))] // a first bound of 0 or less
    #[case(&[(-1.0, 2.0), (2.0, 4.0), (INF, 4.0)], 0.75, Some(0.5))]
    #[case(&[(1.0, 3.0), (2.0, 2.0), (INF, 4.0)], 0.75, Some(1.0))] // counts that fall
    #[case(&[(1.0, 4.0), (INF, 2.0)], 1.0, Some(1.0))]
    #[case(&[(1.0, 0.0), (INF, 0.0)], 0.5, None)]
    #[case(&[(1.0, 2.0), (2.0, 4.0)], 0.5, None)] // no +Inf bucket
    #[case(&[(INF, 4.0)], 0.5, None)]
    #[case(&[], 0.5, None)]
    #[case(&[(1.0, f64::NAN), (INF, 4.0)], 0.5, None)]
    #[case(&[(1.0, 2.0), (INF, 4.0)], 1.1, None)]
    #[case(&[(1.0, 2.0), (INF, 4.0)], -0.1, None)]
    #[case(&[(1.0, 2.0), (INF, 4.0)], f64::NAN, None)]
    fn quantiles(#[case] buckets: &[(f64, f64)], #[case] q: f64, #[case] wanted: Option<f64>) {
        assert_eq!(one(buckets).quantile(q), wanted);
    }

    #[test]
    fn delta_is_what_happened_in_between() {
        let (old, new) = (one(&[(1.0, 1.0), (INF, 4.0)]), one(&[(1.0, 3.0), (INF, 9.0)]));
        let got = new.delta(&old).unwrap();
        assert_eq!(got, Histogram { sum: Some(0.0), ..one(&[(1.0, 2.0), (INF, 5.0)]) });
        assert_eq!(got.observations(), Some(5.0));
        assert_eq!(new.delta(&new).unwrap().observations(), Some(0.0));
    }

    #[rstest]
    #[case(&[(1.0, 0.0), (INF, 9.0)])] // a bucket fell
    #[case(&[(1.0, 2.0), (INF, 3.0)])] // all fell: a restart
    #[case(&[(2.0, 3.0), (INF, 9.0)])] // other bounds
    #[case(&[(1.0, 3.0), (2.0, 3.0), (INF, 9.0)])]
    #[case(&[(1.0, f64::NAN), (INF, 9.0)])]
    fn delta_across_a_restart_is_none(#[case] new: &[(f64, f64)]) {
        assert_eq!(one(new).delta(&one(&[(1.0, 1.0), (INF, 4.0)])), None);
    }

    #[test]
    fn delta_sees_a_count_that_fell_alone() {
        let old = one(&[(INF, 4.0)]);
        assert_eq!(Histogram { count: Some(3.0), ..old.clone() }.delta(&old), None);
        assert_eq!(Histogram { count: None, ..old.clone() }.delta(&old), None);
        assert_eq!(Histogram { sum: None, ..old.clone() }.delta(&old).unwrap().sum, None);
    }

    #[test]
    fn merge_adds_up_at_common_bounds() {
        let (a, b) = (one(&[(1.0, 1.0), (2.0, 2.0), (INF, 4.0)]), one(&[(0.5, 1.0), (2.0, 3.0), (4.0, 3.0), (INF, 3.0)]));
        let wanted = Histogram { sum: Some(20.0), ..one(&[(2.0, 5.0), (INF, 7.0)]) };
        assert_eq!(a.merge(&b), wanted);
        assert_eq!(b.merge(&a), wanted);
        assert_eq!(a.merge(&Histogram::default()), a);
        assert_eq!([&a, &b].into_iter().fold(Histogram::default(), |sum, next| sum.merge(next)), wanted);
        assert_eq!(a.merge(&Histogram { sum: None, ..b }).sum, None);
    }

    #[test]
    fn mean_and_observations() {
        let some = one(&[(1.0, 1.0), (INF, 4.0)]);
        assert_eq!((some.mean(), some.observations()), (Some(2.5), Some(4.0)));
        let only_count = Histogram { buckets: Vec::new(), sum: Some(3.0), count: Some(2.0) };
        assert_eq!((only_count.mean(), only_count.observations()), (Some(1.5), Some(2.0)));
        assert_eq!((one(&[(INF, 0.0)]).mean(), Histogram::default().observations()), (None, None));
    }
}
