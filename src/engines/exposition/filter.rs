//! Which families of a page are wanted. The name alone decides, before a line's labels are looked at.
use super::kind::{Kind, Role, split_ending};

/// The families that a reader wants.
///
/// Names are those of the text format: `foo_total` for a counter, also where an OpenMetrics page declares it as `foo`;
/// `foo` for a histogram with its `_bucket`, `_sum` and `_count`. A `foo_created` series is a family of its own and
/// comes only where it is named, or where its prefix is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter<'f> {
    /// All of them.
    All,
    /// Those with one of these names, in any order.
    Names(&'f [&'f str]),
    /// Those whose name begins with one of these.
    Prefixes(&'f [&'f str]),
}

/// A filter made ready for asking many times.
pub(super) struct Wanted<'f> {
    filter: Filter<'f>,
    /// Sorted. For `Names`: the names themselves.
    names: Vec<&'f str>,
    /// Sorted: bases of wanted names, as OpenMetrics declares them (`foo` for `foo_total`).
    bases: Vec<&'f str>,
}

impl<'f> Wanted<'f> {
    pub(super) fn new(filter: &Filter<'f>) -> Self {
        let mut names = match filter {
            Filter::All => Vec::new(),
            Filter::Names(list) | Filter::Prefixes(list) => list.to_vec(),
        };
        names.sort_unstable();
        let based = names.iter().filter_map(|name| split_ending(name));
        let mut bases: Vec<&str> = based.filter(|(_, ending)| ending.in_family_name).map(|(base, _)| base).collect();
        bases.sort_unstable();
        Self { filter: *filter, names, bases }
    }

    /// Whether a line with this name may belong to a wanted family: a sample's name, or one on a TYPE line.
    /// Says yes too often rather than too rarely; [`Wanted::family`] has the last word.
    pub(super) fn line(&self, name: &str) -> bool {
        match self.filter {
            Filter::All => true,
            Filter::Prefixes(_) => self.starts(name),
            Filter::Names(_) => {
                has(&self.names, name)
                    || has(&self.bases, name)
                    || split_ending(name).is_some_and(|(base, ending)| ending.role != Role::Created && has(&self.names, base))
            }
        }
    }

    /// Whether a family with this name is wanted.
    pub(super) fn family(&self, name: &str) -> bool {
        match self.filter {
            Filter::All => true,
            Filter::Prefixes(_) => self.starts(name),
            Filter::Names(_) => has(&self.names, name),
        }
    }

    /// Whether a family that was declared but has no sample is wanted: OpenMetrics leaves the ending off.
    pub(super) fn declared(&self, name: &str, kind: Kind) -> bool {
        let named = |full: &&str| split_ending(full).is_some_and(|(base, ending)| base == name && ending.kinds == [kind]);
        self.family(name) || self.names.iter().any(named)
    }

    fn starts(&self, name: &str) -> bool {
        self.names.iter().any(|prefix| name.starts_with(prefix))
    }
}

fn has(sorted: &[&str], name: &str) -> bool {
    sorted.binary_search(&name).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const NAMES: Filter<'static> = Filter::Names(&["z:gauge", "a_total", "hist", "it_tokens_total", "own_created"]);

    #[rstest]
    #[case("z:gauge", true, true)]
    #[case("z:gauge2", false, false)]
    #[case("z:gaug", false, false)]
    #[case("a_total", true, true)]
    #[case("a", true, false)] // as OpenMetrics declares it
    #[case("hist_bucket", true, false)]
    #[case("hist_sum", true, false)]
    #[case("hist_created", false, false)]
    #[case("it_tokens_total_bucket", true, false)]
    #[case("own_created", true, true)]
    #[case("python_info", false, false)]
    fn names(#[case] name: &str, #[case] line: bool, #[case] family: bool) {
        let wanted = Wanted::new(&NAMES);
        assert_eq!((wanted.line(name), wanted.family(name)), (line, family));
    }

    #[test]
    fn prefixes_and_all() {
        let wanted = Wanted::new(&Filter::Prefixes(&["vllm:", "DCGM_"]));
        assert!(wanted.line("vllm:x_created") && wanted.family("DCGM_FI"));
        assert!(!wanted.line("vllm") && !wanted.family("xDCGM_"));
        assert!(Wanted::new(&Filter::All).line("anything"));
        assert!(!Wanted::new(&Filter::Names(&[])).line("anything"));
    }

    #[test]
    fn a_declared_counter_without_samples_is_wanted_by_its_full_name() {
        let wanted = Wanted::new(&NAMES);
        assert!(wanted.declared("a", Kind::Counter));
        assert!(!wanted.declared("a", Kind::Gauge));
        assert!(!wanted.declared("own", Kind::Counter), "only its created series was asked for");
    }
}
