//! `replicas-flapping`: replicas go up and down again within minutes.
//!
//! Seen in the versions of the object that a watch saw, else in the HPA's SuccessfulRescale events. Two changes of direction within a
//! quarter of an hour count: an HPA that follows a load does not turn twice in that time, its own scale-down window is five minutes.

use jiff::Timestamp;

use crate::model::finding::{Code, Finding};
use crate::model::time::seconds_between;
use crate::model::{Evidence, Place, Subject};
use crate::world::World;

/// Seconds in which the turns must lie.
const WINDOW_S: i64 = 900;
/// Turns that make it flapping.
const TURNS: usize = 2;

/// A number of replicas, and what shows it.
type Point = (Timestamp, u32, Evidence);

pub(super) fn check(world: &World, out: &mut Vec<Finding>) {
    let targets: std::collections::BTreeSet<&Subject> = world.history.keys().chain(world.scaling.keys()).collect();
    for target in targets {
        let seen: Vec<Point> = world
            .replica_writes(target)
            .into_iter()
            .map(|write| {
                (write.at, write.replicas, Evidence::field(target, "spec.replicas", write.replicas.to_string()).seen_at(Some(write.at)))
            })
            .collect();
        let points = if seen.len() > 1 { seen } else { from_events(world, target) };
        if let Some(part) = flapping(&points) {
            out.push(finding(target, part));
        }
    }
}

/// Sizes that the events of its HPAs tell: `New size: 4; reason: …`.
fn from_events(world: &World, target: &Subject) -> Vec<Point> {
    let scalers = world.scaling.get(target).into_iter().flat_map(|scaling| &scaling.scalers);
    let mut points: Vec<Point> = Vec::new();
    for (_, event) in scalers.flat_map(|scaler| world.objects.events_about(&scaler.subject)) {
        let size =
            event.message.strip_prefix("New size: ").and_then(|rest| rest.split(';').next()).and_then(|text| text.trim().parse().ok());
        let Some(size) = size.filter(|_| event.reason == "SuccessfulRescale") else { continue };
        for at in [event.first, event.last].into_iter().flatten() {
            let proof = Evidence::new(&event.about, Place::Event(event.reason.clone()), event.message.clone(), Some(at));
            points.push((at, size, proof));
        }
    }
    points.sort_by_key(|(at, size, _)| (*at, *size));
    points.dedup_by(|next, before| next.1 == before.1);
    points
}

/// The newest stretch of points within the window that turns often enough.
fn flapping(points: &[Point]) -> Option<&[Point]> {
    let end = points.len();
    (0..end).rev().find_map(|last| {
        let until = points.get(last)?.0;
        let first = points.iter().position(|(at, ..)| seconds_between(*at, until) <= WINDOW_S)?;
        let part = points.get(first..=last)?;
        (turns(part) >= TURNS).then_some(part)
    })
}

fn turns(points: &[Point]) -> usize {
    points.windows(3).filter(|three| matches!(three, [(_, a, _), (_, b, _), (_, c, _)] if (a < b && c < b) || (a > b && c > b))).count()
}

fn finding(target: &Subject, points: &[Point]) -> Finding {
    let values: Vec<String> = points.iter().map(|(_, n, _)| n.to_string()).collect();
    let span = match (points.first(), points.last()) {
        (Some(first), Some(last)) => crate::model::time::span(seconds_between(first.0, last.0)),
        _ => String::new(),
    };
    let down = points.windows(2).map(|pair| matches!(pair, [(_, a, _), (_, b, _)] if b < a)).filter(|down| *down).count();
    let mut proofs = points.iter().map(|(.., proof)| proof.clone());
    let first = proofs.next().unwrap_or_else(|| Evidence::field(target, "spec.replicas", ""));
    Finding::new(
        Code::ReplicasFlapping,
        target,
        format!(
            "replicas of {target} went {} within {span}: each of the {down} drops ended pods, and each rise loads the model anew",
            values.join(", ")
        ),
        first,
    )
    .proofs(proofs)
    .remedy("find who writes the number (owners of spec.replicas) and leave it to one of them")
    .remedy(
        "if one autoscaler does it alone: lengthen behavior.scaleDown.stabilizationWindowSeconds beyond the time a replica takes to load",
    )
    .not("write a value by hand in between")
}

#[cfg(test)]
mod tests {
    use super::super::kit::{deployment, hpa};
    use crate::diagnose::testkit::Kit;
    use crate::model::finding::Code;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case(&[(480, 4), (360, 2), (345, 4), (180, 2), (40, 4)], true)]
    #[case(&[(480, 4), (360, 2), (345, 4)], false)]
    #[case(&[(9000, 4), (6000, 2), (3000, 4), (40, 2)], false)]
    #[case(&[(480, 1), (360, 2), (345, 3), (180, 4), (40, 5)], false)]
    fn versions(#[case] seen: &[(i64, u32)], #[case] fires: bool) {
        let last = seen.last().unwrap().1;
        let kit = seen.iter().fold(Kit::new(), |kit, (ago, n)| kit.seen_before(*ago, &deployment(*n)));
        let world = kit.object(deployment(last)).build();
        assert_eq!(world.none(Code::ReplicasFlapping), !fires);
    }

    #[rstest]
    #[case(&[("09:50", 4), ("09:52", 2), ("09:54", 4), ("09:56", 2)], true)]
    #[case(&[("09:50", 4), ("09:56", 2)], false)]
    fn events(#[case] sizes: &[(&str, u32)], #[case] fires: bool) {
        let event = |(i, (at, n)): (usize, &(&str, u32))| {
            let at = format!("2026-11-12T{at}:00Z");
            json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": format!("e{i}"), "namespace": "s"}, "reason": "SuccessfulRescale",
                "message": format!("New size: {n}; reason: x"), "firstTimestamp": at, "lastTimestamp": at,
                "involvedObject": {"kind": "HorizontalPodAutoscaler", "namespace": "s", "name": "h"}})
        };
        let kit = Kit::new().object(deployment(2)).object(hpa("h", "True", "", 2));
        let world = sizes.iter().enumerate().map(event).fold(kit, Kit::object).build();
        assert_eq!(world.none(Code::ReplicasFlapping), !fires);
    }
}
