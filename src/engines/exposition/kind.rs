//! What a family is ([`Kind`], from its TYPE line) and what one sample is in it ([`Role`]).
//! A kind never comes from a name's ending alone: `vllm:iteration_tokens_total` is a histogram.

/// The type of a family, as its `# TYPE` line says. Prometheus text format 0.0.4 has the first four and `untyped`,
/// OpenMetrics 1.0 has all (and writes `unknown` for untyped).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Only grows, except at a restart.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Cumulative buckets by `le`, with sum and count.
    Histogram,
    /// Quantiles worked out by the exporter, with sum and count.
    Summary,
    /// A constant 1 whose labels are the message (OpenMetrics).
    Info,
    /// One 0/1 sample a state (OpenMetrics).
    StateSet,
    /// A histogram of a present state, whose counts may fall (OpenMetrics).
    GaugeHistogram,
    /// No TYPE line, or one that says so.
    Untyped,
}

impl Kind {
    /// The word of a TYPE line; case does not matter, as for the Go reader. `None` for a word that no format knows.
    pub(super) fn from_word(word: &[u8]) -> Option<Self> {
        const WORDS: [(&str, Kind); 9] = [
            ("counter", Kind::Counter),
            ("gauge", Kind::Gauge),
            ("histogram", Kind::Histogram),
            ("summary", Kind::Summary),
            ("info", Kind::Info),
            ("stateset", Kind::StateSet),
            ("gaugehistogram", Kind::GaugeHistogram),
            ("unknown", Kind::Untyped),
            ("untyped", Kind::Untyped),
        ];
        WORDS.iter().find(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes())).map(|(_, kind)| *kind)
    }

    /// The word as the text format writes it, for screens.
    pub const fn word(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
            Kind::Summary => "summary",
            Kind::Info => "info",
            Kind::StateSet => "stateset",
            Kind::GaugeHistogram => "gaugehistogram",
            Kind::Untyped => "untyped",
        }
    }

    /// Whether families of this kind come with `_created` series.
    pub(super) const fn has_created(self) -> bool {
        matches!(self, Kind::Counter | Kind::Histogram | Kind::Summary)
    }

    /// Whether only OpenMetrics knows this kind.
    pub(super) const fn only_openmetrics(self) -> bool {
        matches!(self, Kind::Info | Kind::StateSet | Kind::GaugeHistogram)
    }
}

/// What one sample is in its family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// The number itself: of a gauge or counter, a quantile of a summary, a state of a stateset.
    Value,
    /// A cumulative bucket, bounded by its label `le`.
    Bucket,
    /// The sum of all observations.
    Sum,
    /// The number of all observations.
    Count,
    /// When the series began, in Unix seconds (`_created`). It is a point in time, never a count of anything.
    Created,
}

/// An ending that makes a sample part of another family, if that family's kind is among those listed.
pub(super) struct Ending {
    /// With its underscore.
    pub(super) text: &'static str,
    /// What the sample is then.
    pub(super) role: Role,
    /// Kinds that have samples with this ending.
    pub(super) kinds: &'static [Kind],
    /// Whether the family's name in the text format has the ending too, as `foo_total` has, which OpenMetrics
    /// declares as `foo`.
    pub(super) in_family_name: bool,
}

/// All such endings of both formats.
pub(super) const ENDINGS: [Ending; 8] = [
    Ending { text: "_bucket", role: Role::Bucket, kinds: &[Kind::Histogram, Kind::GaugeHistogram], in_family_name: false },
    Ending { text: "_sum", role: Role::Sum, kinds: &[Kind::Histogram, Kind::Summary], in_family_name: false },
    Ending { text: "_count", role: Role::Count, kinds: &[Kind::Histogram, Kind::Summary], in_family_name: false },
    Ending { text: "_gsum", role: Role::Sum, kinds: &[Kind::GaugeHistogram], in_family_name: false },
    Ending { text: "_gcount", role: Role::Count, kinds: &[Kind::GaugeHistogram], in_family_name: false },
    Ending { text: "_total", role: Role::Value, kinds: &[Kind::Counter], in_family_name: true },
    Ending { text: "_info", role: Role::Value, kinds: &[Kind::Info], in_family_name: true },
    Ending { text: "_created", role: Role::Created, kinds: &[Kind::Counter, Kind::Histogram, Kind::Summary], in_family_name: true },
];

/// Splits a name into its base and the ending after it, if it has one of [`ENDINGS`].
pub(super) fn split_ending(name: &str) -> Option<(&str, &'static Ending)> {
    // All endings begin at the last underscore, so there is one place to look.
    let (base, ending) = name.split_at_checked(name.rfind('_')?)?;
    ENDINGS.iter().find(|known| known.text == ending).map(|ending| (base, ending))
}
