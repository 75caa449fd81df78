//! `load-imbalance`: engines of one pod, or replicas of one role, are loaded very unevenly.

use crate::diagnose::support::number;
use crate::model::finding::{Code, Finding};
use crate::model::{Evidence, Place, Subject};
use crate::world::World;

/// One engine or replica with its load.
struct Loaded {
    name: String,
    subject: Subject,
    running: f64,
    waiting: f64,
    kv: Option<f64>,
    at: jiff::Timestamp,
}

impl Loaded {
    fn work(&self) -> f64 {
        self.running + self.waiting
    }

    fn shown(&self) -> String {
        let kv = self.kv.map(|kv| format!(", KV {:.0} %", kv * 100.0)).unwrap_or_default();
        format!("{} running, {} waiting{kv}", number(self.running), number(self.waiting))
    }
}

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    // Ranks of one engine.
    for (subject, engine) in &world.engines {
        let Ok(load) = &engine.load else { continue };
        let ranks: Vec<Loaded> = load
            .ranks
            .iter()
            .filter_map(|(rank, of)| {
                Some(Loaded {
                    name: format!("engine {rank}"),
                    subject: subject.clone(),
                    running: of.running?,
                    waiting: of.waiting?,
                    kv: of.kv_usage,
                    at: load.at,
                })
            })
            .collect();
        out.extend(uneven(&ranks).map(|(high, low)| {
            finding(subject, &format!("the {} engines of {}", ranks.len(), subject.name()), high, low)
                .remedy("look at how requests are spread over the data-parallel ranks: by session, by rank port, or by the API server's own balancer")
        }));
    }
    // Replicas of one role that serve.
    for service in world.services.values() {
        for role in &service.roles {
            let replicas: Vec<Loaded> = role
                .replicas
                .iter()
                .filter_map(|subject| world.replicas.get(subject))
                .filter(|replica| replica.state.serves())
                .filter_map(|replica| {
                    let load = replica.engine.as_ref().ok()?.load.as_ref().ok()?;
                    Some(Loaded {
                        name: replica.subject.name().to_owned(),
                        subject: replica.subject.clone(),
                        running: load.running.as_ref().ok()?.value,
                        waiting: load.waiting.as_ref().ok()?.value,
                        kv: load.kv_usage.as_ref().ok().map(|fact| fact.value),
                        at: load.at,
                    })
                })
                .collect();
            let Some((high, low)) = uneven(&replicas) else { continue };
            let about = role.workloads.first().unwrap_or(&high.subject);
            out.push(
                finding(about, &format!("the replicas of {}", about.name()), high, low)
                    .also(&high.subject)
                    .also(&low.subject)
                    .remedy("look at the router's scorers (or the client's long-lived connections): a new replica starts with a cold prefix cache and is starved by prefix affinity"),
            );
        }
    }
}

fn finding(about: &Subject, whom: &str, high: &Loaded, low: &Loaded) -> Finding {
    let idle = if low.work() == 0.0 { " (idle)" } else { "" };
    let proof = |of: &Loaded| {
        Evidence::new(&of.subject, Place::Metric("running, waiting".into()), format!("{}: {}", of.name, of.shown()), Some(of.at))
    };
    Finding::new(
        Code::LoadImbalance,
        about,
        format!("{whom} are loaded unevenly: {} has {}, {} has {}{idle}", high.name, high.shown(), low.name, low.shown()),
        proof(high),
    )
    .proof(proof(low))
}

/// The most and the least loaded, when the difference is one that costs: a queue at one while another is idle, or many times the work.
fn uneven(of: &[Loaded]) -> Option<(&Loaded, &Loaded)> {
    if of.len() < 2 {
        return None;
    }
    let order = |a: &&Loaded, b: &&Loaded| {
        (a.waiting, a.work(), a.kv.unwrap_or(0.0))
            .partial_cmp(&(b.waiting, b.work(), b.kv.unwrap_or(0.0)))
            .unwrap_or(std::cmp::Ordering::Equal)
    };
    let high = of.iter().max_by(order)?;
    let low = of.iter().min_by(|a, b| a.work().total_cmp(&b.work()).then(a.kv.unwrap_or(0.0).total_cmp(&b.kv.unwrap_or(0.0))))?;
    let queue_beside_idle = high.waiting >= 2.0 && low.work() == 0.0;
    let many_times = high.work() >= 8.0 && high.work() >= 4.0 * (low.work() + 1.0);
    let cache = matches!((high.kv, low.kv), (Some(high_kv), Some(low_kv)) if high_kv >= 0.9 && low_kv <= 0.3) && high.waiting >= 1.0;
    (queue_beside_idle || many_times || cache).then_some((high, low))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn loaded(running: f64, waiting: f64, kv: f64) -> Loaded {
        Loaded { name: "x".into(), subject: Subject::engine("x"), running, waiting, kv: Some(kv), at: jiff::Timestamp::UNIX_EPOCH }
    }

    #[rstest]
    #[case::a_queue_beside_an_idle_one(&[(9.0, 4.0, 0.9), (0.0, 0.0, 0.02), (11.0, 6.0, 0.98)], true)]
    #[case::many_times_the_work(&[(40.0, 0.0, 0.5), (2.0, 0.0, 0.1)], true)]
    #[case::a_full_cache_with_a_queue(&[(10.0, 1.0, 0.95), (9.0, 0.0, 0.2)], true)]
    #[case::somewhat_uneven(&[(8.0, 3.0, 0.7), (2.0, 0.0, 0.1)], false)]
    #[case::even(&[(5.0, 1.0, 0.4), (4.0, 2.0, 0.4)], false)]
    #[case::all_idle(&[(0.0, 0.0, 0.0), (0.0, 0.0, 0.0)], false)]
    #[case::one_request_beside_idle(&[(1.0, 0.0, 0.1), (0.0, 0.0, 0.0)], false)]
    #[case::alone(&[(50.0, 60.0, 1.0)], false)]
    fn spread(#[case] loads: &[(f64, f64, f64)], #[case] fires: bool) {
        let loads: Vec<Loaded> = loads.iter().map(|(running, waiting, kv)| loaded(*running, *waiting, *kv)).collect();
        assert_eq!(uneven(&loads).is_some(), fires);
    }

    #[test]
    fn replicas_of_one_role_and_ranks_of_one_engine() {
        use crate::diagnose::testkit::{Kit, vllm_page};
        use crate::model::finding::Code;
        let world = Kit::new()
            .pod_with("a", |_| ())
            .pod_with("b", |_| ())
            .owned("a", "StatefulSet", "w")
            .owned("b", "StatefulSet", "w")
            .page("a", 0, &vllm_page(9.0, 3.0, 5.0))
            .page("b", 0, &vllm_page(0.0, 0.0, 5.0))
            .build();
        let finding = world.only(Code::LoadImbalance);
        assert_eq!(
            finding.summary,
            "the replicas of w are loaded unevenly: a has 9 running, 3 waiting, KV 20 %, b has 0 running, 0 waiting, KV 20 % (idle)"
        );
        assert_eq!(finding.subjects.iter().map(Subject::as_str).collect::<Vec<_>>(), ["statefulset/s/w", "pod/s/a", "pod/s/b"]);
        let two = vllm_page(9.0, 3.0, 5.0) + &vllm_page(4.0, 0.0, 5.0).replace("engine=\"0\"", "engine=\"1\"");
        let world = Kit::new().pod_with("a", |_| ()).page("a", 0, &two).build();
        let finding = world.findings.iter().find(|finding| finding.code == Code::LoadImbalance);
        assert!(finding.is_none(), "{finding:?}");
        let idle = two.replace("engine=\"1\",model_name=\"m\"} 4\n", "engine=\"1\",model_name=\"m\"} 0\n");
        let finding = Kit::new().pod_with("a", |_| ()).page("a", 0, &idle).build().only(Code::LoadImbalance);
        assert!(
            finding.summary.contains("engine 0 has 9 running") && finding.summary.contains("engine 1 has 0 running"),
            "{}",
            finding.summary
        );
    }
}
