//! `download-stalled`: the download of the model does not move any more.

use crate::engines::LogReading;
use crate::engines::logs::Counted;
use crate::model::finding::{Code, Finding};
use crate::model::object::pod::ContainerStatus;
use crate::model::service::Replica;
use crate::model::state::ReplicaState;
use crate::model::{Evidence, time};
use crate::world::World;
use crate::world::probes::logs;

/// Seconds without a change between two lines before it is a finding: a big file counts in one step.
const BETWEEN_S: f64 = 120.0;
/// Seconds since the last line, where two lines have shown the same count.
const SINCE_S: i64 = 300;

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    for replica in world.replicas.values().filter(|replica| replica.subject.kind() == "pod") {
        if !matches!(replica.state, ReplicaState::Downloading | ReplicaState::Starting | ReplicaState::Loading) {
            continue;
        }
        let log = logs(world, &replica.subject).into_iter().filter(|log| log.previous_at.is_none() && runs(world, replica, &log.container)).find(|log| log.stuck().is_some());
        out.extend(log.and_then(|log| finding(world, replica, &log)));
    }
}

/// Whether the container still runs (it does, where no pod object was read).
fn runs(world: &World, replica: &Replica, container: &str) -> bool {
    let Some((_, pod)) = world.objects.pod(&replica.subject) else { return true };
    pod.container(container).is_none_or(|status: &ContainerStatus| status.running_since().is_some())
}

fn finding(world: &World, replica: &Replica, log: &LogReading) -> Option<Finding> {
    let stuck = log.stuck()?;
    let last = stuck.last.time();
    let quiet = last.map(|last| time::seconds_between(last, world.now));
    let long = stuck.seconds.is_some_and(|seconds| seconds >= BETWEEN_S) || quiet.is_some_and(|quiet| quiet >= SINCE_S);
    if !long {
        return None;
    }
    let subject = &replica.subject;
    let still = stuck.seconds.map(|seconds| format!(" for {seconds:.0} s")).unwrap_or_default();
    let since = last.map(|last| format!("; last line at {last}, {} ago", time::span(time::seconds_between(last, world.now)))).unwrap_or_default();
    let share = log.newest_of(Counted::Download).and_then(|progress| progress.share).map(|share| format!(" ({:.0} %)", share * 100.0)).unwrap_or_default();
    let again = |line: &Evidence, n: usize| Evidence { value: format!("{} (the same count on {n} lines)", line.value), ..line.clone() };
    Some(
        Finding::new(
            Code::DownloadStalled,
            subject,
            format!("the download of {} stands still at {}{share}{still}: {} lines of its log show the same count{since}", subject.name(), stuck.count, stuck.lines),
            again(&log.evidence(&stuck.last), stuck.lines),
        )
        .proof(log.evidence(&stuck.first))
        .remedy("look from the pod's node whether the source of the model answers: network, proxy, token, rate limit, a full disk")
        .remedy("restart the download (delete the pod) when the source answers again: most downloaders resume, not all")
        .remedy("keep the model on a volume or in an image, so that a start does not depend on the source")
        .not("wait for the progress deadline: it restarts nothing"),
    )
}

#[cfg(test)]
mod tests {
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;
    use rstest::rstest;

    #[rstest]
    #[case::still(&["2026-11-12 09:40:00 Fetching 40 files:  50%|##| 20/40 [05:00<05:00, 15.0s/it]",
        "2026-11-12 09:50:00 Fetching 40 files:  50%|##| 20/40 [15:00<15:00, 45.0s/it]"], true)]
    #[case::it_moves(&["2026-11-12 09:40:00 Fetching 40 files:  50%|##| 20/40 [05:00<05:00, 15.0s/it]",
        "2026-11-12 09:50:00 Fetching 40 files:  75%|##| 30/40 [15:00<05:00, 30.0s/it]"], false)]
    #[case::done(&["2026-11-12 09:40:00 Fetching 40 files: 100%|##| 40/40 [05:00<00:00, 15.0s/it]",
        "2026-11-12 09:50:00 Fetching 40 files: 100%|##| 40/40 [05:00<00:00, 15.0s/it]"], false)]
    #[case::a_moment(&["2026-11-12 09:59:50 Fetching 40 files:  50%|##| 20/40 [05:00<05:00, 15.0s/it]",
        "2026-11-12 09:59:55 Fetching 40 files:  50%|##| 20/40 [05:05<05:05, 15.0s/it]"], false)]
    fn two_lines(#[case] lines: &[&str], #[case] fires: bool) {
        let world = Kit::new().loading_pod("a").log("a", "vllm", lines).build();
        assert_eq!(world.none(Code::DownloadStalled), !fires);
    }
}
