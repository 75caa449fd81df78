//! `metrics-unreadable`: the metrics page can not be read, or lines of it can't.
//!
//! A page that timed out or was refused is no unreadable page: that is the engine's silence, and its load is unknown for that reason.

use crate::engines::exposition::Verdict;
use crate::model::engine::HttpOutcome;
use crate::model::finding::{Code, Finding};
use crate::model::{Evidence, Place, Subject};
use crate::world::World;

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for (subject, pages) in &world.pages {
        let Some(page) = pages.last() else { continue };
        let place = Place::Http(format!("GET {}", page.path));
        let at = Some(page.at);
        match page.page.verdict() {
            Verdict::NotMetrics(what) => out.push(
                Finding::new(
                    Code::MetricsUnreadable,
                    subject,
                    format!("{} of {} is no metrics page: {what}", page.path, subject.name()),
                    Evidence::new(subject, place, what.to_string(), at),
                )
                .remedy("check port and path of the scrape: this is what something else answers there"),
            ),
            Verdict::Empty => out.push(
                Finding::new(
                    Code::MetricsUnreadable,
                    subject,
                    format!("{} of {} holds no series at all", page.path, subject.name()),
                    Evidence::new(subject, place, "no series", at),
                )
                .remedy("check whether metrics are switched on in the engine (SGLang: --enable-metrics)"),
            ),
            Verdict::Metrics => {
                let unread = page.page.unread();
                if unread.count == 0 {
                    continue;
                }
                let lines: Vec<String> =
                    unread.lines.iter().take(3).map(|line| format!("line {} {}: {}", line.number, line.reason, line.text)).collect();
                out.push(
                    Finding::new(
                        Code::MetricsUnreadable,
                        subject,
                        format!(
                            "{} {} of {} on {} could not be read; what the rest says is shown",
                            unread.count,
                            if unread.count == 1 { "line" } else { "lines" },
                            page.path,
                            subject.name()
                        ),
                        Evidence::new(subject, place, lines.join("; "), at),
                    )
                    .remedy("look at the lines: an exporter in front of the engine may have cut or mixed the page"),
                );
            }
        }
    }
    refused_by_status(world, out);
}

/// A page that was answered with a status that is no page.
fn refused_by_status(world: &World, out: &mut Vec<Finding>) {
    for (subject, answers) in &world.answers {
        let asked = |answer: &&crate::model::engine::HttpAnswer| answer.method == "GET" && answer.route().ends_with("/metrics");
        let Some(last) = answers.iter().rev().find(asked) else { continue };
        let HttpOutcome::Answered { status, .. } = &last.outcome else { continue };
        let newer_page = world.pages.get(subject).is_some_and(|pages| pages.iter().any(|page| page.at >= last.at));
        if (200..300).contains(status) || newer_page || !matches!(subject.kind(), "pod" | "engine") {
            continue;
        }
        out.push(finding_of_status(subject, *status, last.evidence(), last.route()));
    }
}

fn finding_of_status(subject: &Subject, status: u16, proof: Evidence, route: &str) -> Finding {
    let finding = Finding::new(
        Code::MetricsUnreadable,
        subject,
        format!("{route} of {} answers {status}: its load is not known", subject.name()),
        proof,
    );
    match status {
        401 | 403 => finding.remedy("give the scrape the API key or token that this engine asks for"),
        404 => finding.remedy("check port and path, and whether metrics are switched on (SGLang: --enable-metrics)"),
        503 => finding.remedy("wait if the engine is scaling its experts (vLLM answers 503 on every path then), else look at its log"),
        _ => finding.remedy("look at the engine's log"),
    }
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::{Kit, vllm_page};
    use crate::model::finding::Code;
    use rstest::rstest;

    #[rstest]
    #[case::html("<!DOCTYPE html><html><body>Not here</body></html>", true)]
    #[case::json("{\"detail\":\"Not Found\"}", true)]
    #[case::empty("", true)]
    #[case::fine(&vllm_page(1.0, 0.0, 5.0), false)]
    fn pages(#[case] page: &str, #[case] fires: bool) {
        let world = Kit::new().pod_with("a", |_| ()).page("a", 0, page).build();
        assert_eq!(world.none(Code::MetricsUnreadable), !fires, "{:?}", world.findings);
    }

    #[test]
    fn broken_lines_are_counted_and_shown() {
        let page = format!("{}vllm:num_requests_running{{engine=\"0\n", vllm_page(1.0, 0.0, 5.0));
        let finding = Kit::new().pod_with("a", |_| ()).page("a", 0, &page).build().only(Code::MetricsUnreadable);
        assert!(finding.summary.starts_with("1 line"), "{}", finding.summary);
        assert!(finding.evidence[0].value.contains("a quote is not closed"), "{:?}", finding.evidence);
    }

    #[rstest]
    #[case(Ok((404, "")), true)]
    #[case(Ok((200, "")), false)]
    #[case(Err("timeout"), false)]
    fn answers(#[case] answer: Result<(u16, &'static str), &'static str>, #[case] fires: bool) {
        let world = Kit::new().pod_with("a", |_| ()).answer("a", "/metrics", answer).build();
        assert_eq!(world.none(Code::MetricsUnreadable), !fires);
    }

    #[test]
    fn a_page_read_since_then_outweighs_an_answer_that_was_none() {
        let kit = Kit::new().pod_with("a", |_| ()).answer("a", "/metrics", Ok((404, ""))).page("a", 5, &vllm_page(1.0, 0.0, 5.0));
        assert!(kit.build().none(Code::MetricsUnreadable));
    }
}
