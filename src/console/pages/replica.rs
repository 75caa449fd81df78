//! One replica on the Model page: a table row, the ladder as a waterfall, and the sentences behind them.
//!
//! What Kubernetes believes (pod Ready), what the engine says, and what the router does stand in columns of their own.

use jiff::Timestamp;

use super::findings::labelled;
use crate::console::cells;
use crate::console::theme::{Role, Theme};
use crate::console::widgets::columns::{Column, share};
use crate::console::widgets::document::{Document, Line};
use crate::console::words;
use crate::model::engine::EngineLoad;
use crate::model::ladder::{Ladder, Rung, Stage};
use crate::model::service::Replica;
use crate::model::{Subject, Unknown, time};
use crate::world::World;

/// Pieces of evidence of one replica's state that are shown.
const MAX_PROOFS: usize = 3;

const fn column(title: &'static str, min: u16, ideal: u16, right: bool, rank: u8) -> Column {
    Column { title, min, ideal, right, rank }
}

const COLUMNS: [Column; 13] = [
    column("REPLICA", 14, 48, false, 0),
    column("STATE", 13, 19, false, 0),
    column("POD READY", 9, 9, false, 1),
    column("ENGINE SAYS", 11, 12, false, 1),
    column("LISTED", 6, 6, false, 1),
    column("ROUTED", 6, 6, false, 1),
    column("RUN", 4, 6, true, 2),
    column("WAIT", 4, 6, true, 2),
    column("KV", 4, 5, true, 2),
    column("AS OF", 5, 5, true, 4),
    column("GPU", 3, 3, true, 5),
    column("AGE", 4, 4, true, 3),
    column("SINCE", 5, 5, true, 6),
];

/// Adds the head of the table.
pub(crate) fn head(columns: usize, document: &mut Document, theme: Theme) {
    let titles: Vec<(String, Role)> = COLUMNS.iter().map(|column| (column.title.to_owned(), Role::Dim)).collect();
    document.push(row(&titles, columns, theme));
}

fn row(cells: &[(String, Role)], columns: usize, theme: Theme) -> Line {
    let mut line = Line::indented(1);
    for slot in share(u16::try_from(columns.saturating_sub(1)).unwrap_or(u16::MAX), &COLUMNS) {
        let (Some((text, role)), Some(column)) = (cells.get(slot.index), COLUMNS.get(slot.index)) else {
            continue;
        };
        let cut = if slot.index == 0 { cells::fit_end(text, usize::from(slot.width), theme) } else { text.clone() };
        line = line.pad_to(usize::from(slot.x) + 1, theme).field(&cut, usize::from(slot.width), column.right, *role, theme);
    }
    line
}

/// Adds a replica that a role names and of which nothing else is known.
pub(crate) fn draw_unseen(subject: &Subject, document: &mut Document, theme: Theme) {
    let line = Line::indented(1).put(subject.as_str(), Role::Text, theme);
    document.push(line.put("  nothing is known of it", Role::Dim, theme));
}

/// Adds a replica.
pub(crate) fn draw(world: &World, replica: &Replica, columns: usize, document: &mut Document, theme: Theme) {
    let now = world.now;
    let load = replica.engine.as_ref().ok().and_then(|report| report.load.as_ref().ok());
    document.push(row(&cells(world, replica, load, theme), columns, theme));
    for line in waterfall(&replica.ladder, now, columns, theme) {
        document.push(line);
    }
    let mut way: Vec<String> = Vec::new();
    if let Some(slower) = &replica.slower_than_usual {
        way.push(slower.clone());
    }
    if let Ok(report) = &replica.engine
        && let Some(progress) = &report.progress
    {
        way.push(format!("{} loaded ({}, {})", words::share(progress.value, theme), progress.source, words::since(progress.at, now)));
    }
    way.extend(replica.eta_s.as_ref().ok().copied().and_then(words::eta));
    if !way.is_empty() {
        let role = if replica.slower_than_usual.is_some() { Role::Warn } else { Role::Info };
        labelled("pace", &way.join("; "), role, columns, document, theme);
    }
    for sentence in &replica.why {
        labelled("why", sentence, Role::Text, columns, document, theme);
    }
    // The engine's own sentence, where it says something that the replica's does not.
    if let Ok(report) = &replica.engine
        && !report.why.is_empty()
        && !said(replica, &report.why)
    {
        labelled("engine", &report.why, Role::Text, columns, document, theme);
    }
    if !replica.listing.why.is_empty() && replica.listing.listed == Ok(false) && !said(replica, &replica.listing.why) {
        labelled("listed", &replica.listing.why, Role::Text, columns, document, theme);
    }
    if let Some((stage, Rung::NotReached { why, .. })) = replica.ladder.stuck_at()
        && !why.is_empty()
        && !said(replica, why)
    {
        labelled("stuck", &format!("before {stage}: {why}"), Role::Text, columns, document, theme);
    }
    if let Some(spread) = load.and_then(|load| words::spread(load, theme)) {
        labelled("ranks", &spread, Role::Text, columns, document, theme);
    }
    for (rank, stall) in replica.engine.iter().flat_map(|report| &report.stalled_ranks) {
        let text = format!("rank {rank} has work and no token since {}", words::since(stall.since, now));
        labelled("ranks", &text, Role::Bad, columns, document, theme);
    }
    for (names, why) in reasons(replica) {
        labelled(theme.unknown(), &format!("{names}: {why}"), Role::Dim, columns, document, theme);
    }
    for evidence in replica.evidence.iter().take(MAX_PROOFS) {
        labelled("proof", &words::proof(evidence, now), Role::Dim, columns, document, theme);
    }
    let hidden = replica.evidence.len().saturating_sub(MAX_PROOFS);
    if hidden > 0 {
        labelled("proof", &format!("and {hidden} more"), Role::Dim, columns, document, theme);
    }
}

/// Whether the replica's own sentences hold this one already.
fn said(replica: &Replica, sentence: &str) -> bool {
    replica.why.iter().any(|why| why.contains(sentence))
}

fn cells(world: &World, replica: &Replica, load: Option<&EngineLoad>, theme: Theme) -> Vec<(String, Role)> {
    let now = world.now;
    let (mark, state_role) = words::replica(replica.state);
    let said = match &replica.engine {
        Ok(report) => (words::engine_word(&report.state), words::engine(&report.state).1),
        Err(_) => (theme.unknown().to_owned(), Role::Dim),
    };
    let yes_no = |value| {
        let (word, role) = words::yes_no(value, theme);
        (word.to_owned(), role)
    };
    let known = |text: String| {
        if text == theme.unknown() { (text, Role::Dim) } else { (text, Role::Text) }
    };
    // A group is as old as its leader.
    let created = [&replica.subject].into_iter().chain(&replica.pods).find_map(|subject| world.objects.get(subject)?.meta.created);
    vec![
        (own_name(&replica.subject).to_owned(), Role::Text),
        (format!("{} {}", theme.mark(mark), replica.state.shout()), state_role),
        yes_no(&replica.pod_ready),
        said,
        yes_no(&replica.listing.listed),
        yes_no(&replica.listing.routed),
        known(words::fact(load.and_then(|load| load.running.as_ref().ok()), words::number, theme)),
        known(words::fact(load.and_then(|load| load.waiting.as_ref().ok()), words::number, theme)),
        known(words::fact(load.and_then(|load| load.kv_usage.as_ref().ok()), words::share, theme)),
        (words::age(load.map(|load| load.at), now, theme), Role::Dim),
        (replica.gpus.to_string(), Role::Dim),
        (words::age(created, now, theme), Role::Dim),
        (words::age(replica.since, now, theme), Role::Dim),
    ]
}

/// The name without kind and namespace, which are those of all replicas here: `qwen-0`, `qwen/group/0`.
fn own_name(subject: &Subject) -> &str {
    let skip = if subject.namespace().is_empty() { 2 } else { 3 };
    subject.as_str().splitn(skip, '/').last().unwrap_or_default()
}

/// Names of the rungs in three letters.
fn short(stage: Stage) -> &'static str {
    match stage {
        Stage::Requested => "req",
        Stage::Admitted => "adm",
        Stage::Scheduled => "sch",
        Stage::Pulled => "pul",
        Stage::Started => "sta",
        Stage::Loading => "loa",
        Stage::Warming => "war",
        Stage::EngineReady => "eng",
        Stage::PodReady => "pod",
        Stage::Listed => "lst",
        Stage::Routed => "rtd",
    }
}

/// The ladder in one line, or more where there is no room: each rung with its mark, and how long the way to the next one took. The
/// rung on which the replica stands has the time so far, and a `+`.
fn waterfall(ladder: &Ladder, now: Timestamp, columns: usize, theme: Theme) -> Vec<Line> {
    let stands = ladder.stuck_at().and_then(|_| ladder.iter().filter(|(_, rung)| rung.is_reached()).map(|(stage, _)| stage).last());
    let mut lines = Vec::new();
    let mut line = Line::indented(3);
    for (stage, rung) in ladder.iter() {
        let (mark, role) = match rung {
            Rung::Reached { .. } => (theme.pick("●", "*"), Role::Good),
            Rung::NotReached { .. } => (theme.pick("○", "o"), Role::Warn),
            Rung::Unknown(_) => ("?", Role::Dim),
            Rung::NotApplicable(_) => (theme.pick("·", "."), Role::Dim),
        };
        let took = match (ladder.took(stage), rung.at()) {
            (_, Some(at)) if stands == Some(stage) => {
                format!("{}+", time::short_span(time::seconds_between(at, now)))
            }
            (Some(took), _) => time::short_span(took),
            (None, _) => String::new(),
        };
        let mut item = Line::default().put(mark, role, theme).put(short(stage), Role::Dim, theme);
        if !took.is_empty() {
            item = item.put(" ", Role::Text, theme).put(&took, Role::Text, theme);
        }
        if line.width() + item.width() > columns && line.width() > 3 {
            lines.push(std::mem::replace(&mut line, Line::indented(3)));
        }
        line = line.join(item).put("  ", Role::Text, theme);
    }
    lines.push(line);
    lines
}

/// Why columns are not known, each reason once with what it hides.
fn reasons(replica: &Replica) -> Vec<(String, String)> {
    let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
    let mut add = |name: &'static str, why: Option<&Unknown>| {
        let Some(why) = why else { return };
        match reasons.iter_mut().find(|(known, _)| known == why.why()) {
            Some((_, names)) => names.push(name),
            None => reasons.push((why.why().to_owned(), vec![name])),
        }
    };
    add("pod ready", replica.pod_ready.as_ref().err());
    add("engine", replica.engine.as_ref().err());
    add("listed", replica.listing.listed.as_ref().err());
    add("routed", replica.listing.routed.as_ref().err());
    if let Ok(report) = &replica.engine {
        match &report.load {
            Err(why) => add("load", Some(why)),
            Ok(load) => {
                add("running", load.running.as_ref().err());
                add("waiting", load.waiting.as_ref().err());
                add("KV", load.kv_usage.as_ref().err());
            }
        }
    }
    reasons.into_iter().map(|(why, names)| (names.join(", "), why)).collect()
}
