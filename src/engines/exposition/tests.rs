//! What a page says, put together: families, kinds, roles, filters, caps, histograms, the raw view.
use super::*;
use rstest::rstest;
use std::collections::BTreeMap;

fn all(text: &str) -> Page {
    read(text.as_bytes(), &Filter::All)
}

/// Families as `name kind`, each with its samples as `name{labels} value role`.
fn told(page: &Page) -> Vec<String> {
    let mut out = Vec::new();
    for family in page.families() {
        out.push(format!("{} {}", family.name(), family.kind().word()));
        for sample in family.samples() {
            let labels: Vec<String> = sample.labels().map(|(k, v)| format!("{k}={v}")).collect();
            let role = sample.role();
            out.push(format!("  {}{{{}}} {} {role:?}", sample.name(), labels.join(","), sample.value()));
        }
    }
    out
}

#[test]
fn families_stand_in_name_order_and_their_samples_in_page_order() {
    let page = all("b{x=\"2\"} 2\n# TYPE a gauge\na 1\nb{x=\"1\"} 3\n# TYPE c gauge\n");
    let wanted = ["a gauge", "  a{} 1 Value", "b untyped", "  b{x=2} 2 Value", "  b{x=1} 3 Value", "c gauge"];
    assert_eq!(told(&page), wanted);
    assert!(page.describe("c").is_some() && page.describe("d").is_none());
}

#[test]
fn labels_are_sorted_whatever_the_page_does() {
    let page = all("a{z=\"1\",b=\"2\",\"a.x\"=\"3\"} 1\na{b=\"2\",z=\"1\",\"a.x\"=\"4\"} 1\n");
    let labels: Vec<Vec<_>> = page.samples().map(|sample| sample.labels().collect()).collect();
    assert_eq!(labels, [[("a.x", "3"), ("b", "2"), ("z", "1")], [("a.x", "4"), ("b", "2"), ("z", "1")]]);
    assert_eq!(page.samples().next().unwrap().label("z"), Some("1"));
    assert_eq!(page.samples().next().unwrap().label("y"), None);
}

#[test]
fn a_rejected_sample_leaves_its_neighbours_alone() {
    let page = all("a{x=\"1\",y=\"2\"} 1\na{x=\"1\",x=\"3\",w=\"long value\"} 2\na{x=\"1\",y=\"3\"} 3\n");
    let labels: Vec<Vec<_>> = page.samples().map(|sample| sample.labels().collect()).collect();
    assert_eq!(labels, [[("x", "1"), ("y", "2")], [("x", "1"), ("y", "3")]]);
    assert_eq!(page.unread().by_reason, BTreeMap::from([(Reason::DuplicateLabel, 1)]));
}

#[test]
fn the_type_decides_what_is_a_histogram() {
    let page = all(concat!(
        "# TYPE vllm:iteration_tokens_total histogram\n",
        "vllm:iteration_tokens_total_bucket{le=\"1.0\"} 1\n",
        "vllm:iteration_tokens_total_sum 1\n",
        "vllm:iteration_tokens_total_count 1\n",
        "# TYPE sglang:routing_key_running_req_count gauge\n",
        "sglang:routing_key_running_req_count{gt=\"0\",le=\"1\"} 2\n",
        "untyped_bucket{le=\"1\"} 1\n",
        "untyped_total 1\n",
    ));
    let wanted = [
        "sglang:routing_key_running_req_count gauge",
        "  sglang:routing_key_running_req_count{gt=0,le=1} 2 Value",
        "untyped_bucket untyped",
        "  untyped_bucket{le=1} 1 Value",
        "untyped_total untyped",
        "  untyped_total{} 1 Value",
        "vllm:iteration_tokens_total histogram",
        "  vllm:iteration_tokens_total_bucket{le=1.0} 1 Bucket",
        "  vllm:iteration_tokens_total_sum{} 1 Sum",
        "  vllm:iteration_tokens_total_count{} 1 Count",
    ];
    assert_eq!(told(&page), wanted);
    assert_eq!(page.histograms("sglang:routing_key_running_req_count"), Histograms::default());
    assert_eq!(page.histograms("vllm:iteration_tokens_total").by_labels.len(), 1);
}

#[test]
fn an_own_type_wins_over_an_ending() {
    let page = all("# TYPE a histogram\n# TYPE a_count gauge\na_count 3\na_sum 2\n# TYPE b summary\nb_bucket 1\n");
    let wanted =
        ["a histogram", "  a_sum{} 2 Sum", "a_count gauge", "  a_count{} 3 Value", "b summary", "b_bucket untyped", "  b_bucket{} 1 Value"];
    assert_eq!(told(&page), wanted);
}

const OPENMETRICS: &str = concat!(
    "# HELP foo Some \\\\ text\\nwith two lines.\n# TYPE foo counter\nfoo_total 5 1.5\nfoo_created 1.7e9\n",
    "# TYPE bar info\nbar_info{v=\"1\"} 1\n# TYPE gh gaugehistogram\ngh_bucket{le=\"+Inf\"} 1\ngh_gcount 1\ngh_gsum 2\n",
    "# TYPE s stateset\ns{s=\"on\"} 1\n# TYPE idle counter\n# UNIT w_seconds seconds\n# TYPE w_seconds histogram\n",
    "w_seconds_bucket{le=\"+Inf\"} 4 # {t=\"a\"} 1\nw_seconds_count 4\nw_seconds_created 1\n# EOF\n",
);

#[test]
fn openmetrics_families_have_the_names_of_the_text_format() {
    let page = all(OPENMETRICS);
    let wanted = [
        "bar_info info",
        "  bar_info{v=1} 1 Value",
        "foo_created gauge",
        "  foo_created{} 1700000000 Created",
        "foo_total counter",
        "  foo_total{} 5 Value",
        "gh gaugehistogram",
        "  gh_bucket{le=+Inf} 1 Bucket",
        "  gh_gcount{} 1 Count",
        "  gh_gsum{} 2 Sum",
        "idle counter",
        "s stateset",
        "  s{s=on} 1 Value",
        "w_seconds histogram",
        "  w_seconds_bucket{le=+Inf} 4 Bucket",
        "  w_seconds_count{} 4 Count",
        "w_seconds_created gauge",
        "  w_seconds_created{} 1 Created",
    ];
    assert_eq!(told(&page), wanted);
    assert_eq!(page.format(), Format::OpenMetrics);
    assert_eq!(page.counts().exemplars, 1);
    assert!(page.whole_last_line());
    let foo = page.describe("foo_total").unwrap();
    assert_eq!(foo.help(), Some("Some \\ text\nwith two lines."));
    assert_eq!(foo.samples().next().unwrap().timestamp_ms(), Some(1500));
    assert_eq!(page.describe("w_seconds").unwrap().unit(), Some("seconds"));
    // A counter that has not counted yet is there, and has no samples: not the same as absent.
    assert_eq!(page.describe("idle_total").unwrap().samples().count(), 0);
    assert!(page.describe("s_total").is_none());
}

#[rstest]
#[case("# TYPE a_total counter\na_total 1\n# TYPE a_created gauge\na_created 1.7e9\n", Role::Created)]
#[case("# TYPE a counter\na 1\n# TYPE a_created gauge\na_created 1.7e9\n", Role::Created)]
#[case("# TYPE a histogram\na_created 1.7e9\n", Role::Created)]
#[case("# TYPE a summary\na_created 1.7e9\n", Role::Created)]
#[case("# TYPE a gauge\na_created 1.7e9\n", Role::Value)]
#[case("a_created 1.7e9\n", Role::Value)]
#[case("# TYPE a_total counter\n# TYPE a_created counter\na_created 5\n", Role::Value)]
fn created_series_are_points_in_time(#[case] text: &str, #[case] role: Role) {
    let page = all(text);
    assert_eq!(page.family("a_created").map(|sample| sample.role()).collect::<Vec<_>>(), [role]);
    for family in ["a", "a_total"] {
        assert!(page.family(family).all(|sample| sample.role() != Role::Created));
    }
}

#[rstest]
#[case("# TYPE a gauge\n# TYPE a gauge\na 1\n", Kind::Gauge, 0)]
#[case("# TYPE a gauge\n# TYPE a counter\na 1\n", Kind::Gauge, 1)]
#[case("# HELP a text\n# TYPE a COUNTER\na 1\n", Kind::Counter, 0)]
#[case("# TYPE a sparkline\na 1\n", Kind::Untyped, 1)]
#[case("a 1\n# TYPE a gauge\n", Kind::Gauge, 0)]
fn types(#[case] text: &str, #[case] kind: Kind, #[case] unread: u64) {
    let page = all(text);
    assert_eq!(page.describe("a").unwrap().kind(), kind);
    assert_eq!(page.unread().count, unread);
    assert_eq!(page.family("a").count(), 1);
}

#[test]
fn a_filter_keeps_whole_families_and_counts_the_rest() {
    let text = concat!(
        "# HELP h Histogram\n# TYPE h histogram\nh_bucket{le=\"+Inf\"} 1\nh_sum 1\nh_count 1\n# TYPE h_created gauge\nh_created 5\n",
        "# TYPE h_other gauge\nh_other{broken\nh_bucket{broken 1\n# TYPE other_total counter\nother_total 1\n\n# comment\n",
        "{\"quo.ted\",a=\"b\"} 1\n{\"quo.ted2\",a=\"b\"} 1\n",
    );
    let page = read(text.as_bytes(), &Filter::Names(&["quo.ted", "h"]));
    let wanted = [
        "h histogram",
        "  h_bucket{le=+Inf} 1 Bucket",
        "  h_sum{} 1 Sum",
        "  h_count{} 1 Count",
        "quo.ted untyped",
        "  quo.ted{a=b} 1 Value",
    ];
    assert_eq!(told(&page), wanted);
    let counts = page.counts();
    assert_eq!((counts.samples, counts.metadata, counts.unwanted), (4, 2, 7));
    assert_eq!((counts.comments, counts.blank, page.unread().count), (1, 1, 1));
    let prefixed = read(text.as_bytes(), &Filter::Prefixes(&["h_", "other"]));
    let names: Vec<_> = prefixed.families().map(|family| family.name()).collect();
    // Prefixes are of family names, and `h` does not begin with `h_`.
    assert_eq!(names, ["h_bucket", "h_count", "h_created", "h_other", "h_sum", "other_total"]);
}

#[test]
fn a_filter_gives_the_same_families_as_reading_all() {
    for page in [OPENMETRICS, "# TYPE a histogram\n# TYPE a_count gauge\na_count 3\na_sum 2\n"] {
        let whole = all(page);
        for family in whole.families() {
            let one = read(page.as_bytes(), &Filter::Names(&[family.name()]));
            let told_of = |page: &Page| -> Vec<String> {
                let samples = page.family(family.name());
                samples.map(|s| format!("{} {} {:?} {:?}", s.name(), s.value(), s.role(), s.timestamp_ms())).collect()
            };
            assert_eq!(told_of(&one), told_of(&whole), "{}", family.name());
            assert_eq!(one.families().count(), 1, "{}", family.name());
            assert_eq!(one.describe(family.name()).map(Family::kind), Some(family.kind()));
        }
    }
}

#[test]
fn each_cap_is_counted_and_none_is_fatal() {
    let limits = Limits { line_bytes: 40, samples: 3, families: 2, labels: 2, listed: 4, ..Limits::default() };
    let long = format!("# {}\n", "x".repeat(50));
    let text = format!("{long}a 1\nb{{x=\"1\",y=\"2\",z=\"3\"}} 1\nc 1\nb 2\n# TYPE d gauge\na 2\na 3\nb 4\n");
    let page = read_with(text.as_bytes(), &Filter::All, &limits);
    let by_reason =
        BTreeMap::from([(Reason::LineTooLong, 1), (Reason::TooManyLabels, 1), (Reason::TooManyFamilies, 2), (Reason::TooManySamples, 2)]);
    assert_eq!(page.unread().by_reason, by_reason);
    assert_eq!((page.unread().count, page.unread().lines.len()), (6, 4));
    assert_eq!(told(&page), ["a untyped", "  a{} 1 Value", "  a{} 2 Value", "b untyped", "  b{} 2 Value"]);
}

#[rstest]
#[case(100, 12, 0, 3)]
#[case(12, 12, 0, 3)]
#[case(11, 8, 4, 2)]
#[case(8, 8, 4, 2)]
#[case(7, 4, 8, 1)]
#[case(3, 0, 12, 0)]
#[case(0, 0, 12, 0)]
fn a_page_over_the_cap_is_read_to_the_last_whole_line(
    #[case] cap: usize,
    #[case] bytes: usize,
    #[case] beyond: usize,
    #[case] samples: usize,
) {
    let limits = Limits { page_bytes: cap, ..Limits::default() };
    let page = read_with(b"a 1\nb 2\nc 3\n", &Filter::All, &limits);
    assert_eq!((page.bytes(), page.bytes_beyond()), (bytes, beyond));
    assert_eq!(page.samples().count(), samples);
    assert_eq!(page.unread().count, 0);
}

#[test]
fn a_cut_last_line_is_told() {
    assert!(all("a 1\n").whole_last_line() && all("").whole_last_line() && all("a 1\n# EOF").whole_last_line());
    assert!(!all("a 12").whole_last_line());
    assert!(!all("# EOF\na 12").whole_last_line());
}

#[test]
fn bytes_that_are_no_utf8_cost_no_line() {
    let page = read(b"a{x=\"\xff\"} 1\nb{x=\"\xff\xfe\\n\"} 2\n", &Filter::All);
    let labels: Vec<_> = page.samples().filter_map(|sample| sample.label("x")).collect();
    assert_eq!(labels, ["\u{fffd}", "\u{fffd}\u{fffd}\n"]);
}

#[test]
fn the_raw_view_has_the_pages_own_words() {
    let page = all(concat!(
        "# HELP vllm:h Help: \"text\"\n# TYPE vllm:h histogram\n",
        "vllm:h_bucket{m=\"a,b=c}\",le=\"+Inf\"} 3\nvllm:h_bucket{m=\"a,b=c}\",le=\"0.5\"} 1\n",
        "vllm:h_bucket{m=\"a,b=c}\",le=\"x\"} 1\nvllm:h_bucket{m=\"a,b=c}\"} 1\n",
        "vllm:h_sum{m=\"a,b=c}\"} 2.5\nvllm:h_count{m=\"a,b=c}\"} 3\n",
        "# TYPE s summary\ns{quantile=\"0.5\"} 7\ns_sum 9\ns_count 2\ns 1\n",
        "# TYPE c counter\nc{le=\"1\",q=\"\\\"\\\\\\n\"} NaN\nc{le=\"1\",q=\"\"} 2\n",
        "{\"d.e\",\"f.g\"=\"w0\"} -Inf\n",
    ));
    let view = raw::view(&page);
    // Lost are the bucket whose bound is no number and the one without a bound.
    assert_eq!((view.handed, view.lost), (13, 2));
    let rows =
        |name: &str| -> Vec<String> { view.families[name].rows.iter().map(|row| format!("{:?} {:?}", row.labels, row.value)).collect() };
    assert_eq!(view.families["vllm:h"].help.as_deref(), Some("Help: \"text\""));
    assert_eq!(
        rows("vllm:h"),
        [concat!(
            "{\"m\": \"a,b=c}\"} Histogram(Histogram { buckets: [Bucket { le: 0.5, count: 1.0 }, ",
            "Bucket { le: inf, count: 3.0 }], sum: Some(2.5), count: Some(3.0) })"
        )]
    );
    let summary = "{} Summary { quantiles: [(0.5, 7.0)], sum: Some(9.0), count: Some(2.0) }";
    assert_eq!(rows("s"), ["{} Number(1.0)", summary]);
    assert_eq!(rows("c"), [r#"{"le": "1", "q": ""} Number(2.0)"#, r#"{"le": "1", "q": "\"\\\n"} Number(NaN)"#]);
    assert_eq!(rows("d.e"), [r#"{"f.g": "w0"} Number(-inf)"#]);
}

#[test]
fn the_raw_view_is_bounded_and_says_so() {
    let page = all(&"a 1\n".repeat(20_003));
    let view = raw::view(&page);
    assert_eq!((view.handed, view.lost, view.beyond), (20_000, 0, 3));
    assert_eq!(view.families["a"].rows.len(), 20_000);
    let labels: String = (0..100).map(|i| format!("l{i}=\"\",")).collect();
    let page = all(&format!("a{{{labels}}} 1\n").repeat(2_001));
    assert_eq!((raw::view(&page).handed, raw::view(&page).beyond), (2_000, 1));
}

#[test]
fn an_escaped_value_is_not_taken_for_the_one_before() {
    let page = all("a{x=\"\\\\n\"} 1\na{x=\"\\n\"} 2\n");
    let values: Vec<_> = page.samples().filter_map(|sample| sample.label("x")).collect();
    assert_eq!(values, ["\\n", "\n"]);
}

#[test]
fn a_type_holds_from_its_line_on() {
    let page = all("h_sum 1\n# TYPE h histogram\nh_sum 2\n");
    let wanted = ["h histogram", "  h_sum{} 2 Sum", "h_sum untyped", "  h_sum{} 1 Value"];
    assert_eq!(told(&page), wanted);
}

#[test]
fn a_family_whose_only_sample_is_broken_is_still_declared() {
    let page = all("# HELP foo Text\n# TYPE foo counter\nfoo_total{broken 1\nbar{broken 1\n");
    let foo = page.describe("foo_total").unwrap();
    assert_eq!((foo.kind(), foo.help(), foo.samples().count()), (Kind::Counter, Some("Text"), 0));
    assert!(page.describe("bar").is_none(), "nothing says that there is such a family");
    assert_eq!(page.unread().count, 2);
}
