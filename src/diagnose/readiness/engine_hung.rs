//! `engine-hung`: the process answers, has work, and no token moves. Needs two pages at least 60 s apart: a long prefill moves in steps.

use crate::diagnose::support::{last_answer, number};
use crate::model::engine::Stall;
use crate::model::finding::{Code, Finding, Severity};
use crate::model::{Evidence, Place, Subject, time};
use crate::world::World;

/// Seconds without a token before it is a finding; the state shows it from 20 s on.
const FINDING_AFTER_S: i64 = 60;

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for (subject, engine) in &world.engines {
        if let Some(stall) = engine.stall.as_ref().filter(|stall| stall.seconds() >= FINDING_AFTER_S) {
            out.push(finding(world, subject, None, stall));
            continue;
        }
        // One rank of a data-parallel engine may hang while the others serve.
        for (rank, stall) in engine.stalled_ranks.iter().filter(|(_, stall)| stall.seconds() >= FINDING_AFTER_S) {
            out.push(finding(world, subject, Some(rank), stall).severe(Severity::Critical));
        }
    }
}

fn finding(world: &World, subject: &Subject, rank: Option<&str>, stall: &Stall) -> Finding {
    let who = match rank {
        Some(rank) => format!("engine {rank} of {}", subject.name()),
        None => subject.name().to_owned(),
    };
    let counters: Vec<&str> = stall.counters.iter().map(|(name, _)| name.as_str()).collect();
    let work = format!("{} running, {} waiting", number(stall.running.1), number(stall.waiting.1));
    let gauge = |name: &str, (before, after): (f64, f64)| {
        Evidence::new(
            subject,
            Place::Metric(name.into()),
            format!("{} at {}, {} at {}", number(before), time::clock(stall.since), number(after), time::clock(stall.until)),
            Some(stall.until),
        )
    };
    let mut finding = Finding::new(
        Code::EngineHung,
        subject,
        format!("{who} has work ({work}) and no token moved for {} s: {} unchanged", stall.seconds(), counters.join(" and ")),
        gauge(&stall.gauges.1, stall.waiting),
    )
    .proof(gauge(&stall.gauges.0, stall.running));
    for (name, value) in &stall.counters {
        finding = finding.proof(Evidence::new(
            subject,
            Place::Metric(name.clone()),
            format!("{} on both pages, {} s apart", number(*value), stall.seconds()),
            Some(stall.until),
        ));
    }
    for route in ["/health", "/version"] {
        if let Some(answer) = last_answer(world, subject, route).filter(|answer| answer.status() == Some(200)) {
            let proof = answer.evidence();
            finding = finding.proof(Evidence { value: format!("{} (says nothing about the engine's loop)", proof.value), ..proof });
        }
    }
    finding
        .remedy("take it out of selection, so that no more requests end there")
        .remedy("keep its log and a stack dump of the engine's core process, then replace the replica")
        .not("trust /health: it answers 200 while the engine core stands still")
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::{Kit, vllm_page};
    use crate::model::finding::Code;
    use rstest::rstest;

    #[rstest]
    #[case::still(60, (2.0, 3.0, 10.0), (0.0, 3.0, 10.0), true)]
    #[case::it_moves(60, (2.0, 3.0, 10.0), (0.0, 3.0, 11.0), false)]
    #[case::no_work_before(60, (0.0, 0.0, 10.0), (0.0, 3.0, 10.0), false)]
    #[case::no_work_now(60, (2.0, 3.0, 10.0), (0.0, 0.0, 10.0), false)]
    #[case::too_early_for_a_finding(30, (2.0, 3.0, 10.0), (2.0, 3.0, 10.0), false)]
    fn two_pages(#[case] apart: i64, #[case] before: (f64, f64, f64), #[case] after: (f64, f64, f64), #[case] fires: bool) {
        let page = |(running, waiting, tokens): (f64, f64, f64)| vllm_page(running, waiting, tokens);
        let world = Kit::new().pod_with("a", |_| ()).page("a", -apart, &page(before)).page("a", 0, &page(after)).build();
        assert_eq!(world.none(Code::EngineHung), !fires, "{:?}", world.findings);
    }

    #[test]
    fn one_page_proves_nothing() {
        let world = Kit::new().pod_with("a", |_| ()).page("a", 0, &vllm_page(0.0, 3.0, 10.0)).build();
        assert!(world.none(Code::EngineHung));
    }

    #[test]
    fn one_rank_that_stands_still_beside_one_that_moves() {
        let page =
            |first: f64, second: f64| vllm_page(2.0, 1.0, first) + &vllm_page(2.0, 6.0, second).replace("engine=\"0\"", "engine=\"1\"");
        let world = Kit::new().pod_with("a", |_| ()).page("a", -60, &page(10.0, 50.0)).page("a", 0, &page(90.0, 50.0)).build();
        let finding = world.only(Code::EngineHung);
        assert!(finding.summary.starts_with("engine 1 of a has work"), "{}", finding.summary);
        let both_move = Kit::new().pod_with("a", |_| ()).page("a", -60, &page(10.0, 50.0)).page("a", 0, &page(90.0, 60.0)).build();
        assert!(both_move.none(Code::EngineHung));
    }
}
