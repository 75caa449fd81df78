//! `explain`: the sentence first, then the evidence.

use std::collections::BTreeSet;

use super::args::{Format, Source, View};
use super::document::{self, Document};
use super::error::CliError;
use super::exit::Exit;
use super::load::load;
use super::out::Out;
use super::{select, table, words};
use crate::diagnose::headline::{Tone, headline};
use crate::model::Finding;
use crate::model::service::{ModelService, Role, ServiceId};
use crate::world::World;

/// Most pieces of evidence of a finding in the short text.
const MAX_EVIDENCE: usize = 4;

/// Say what is wrong in one sentence, then prove it: findings, counts, and every replica.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The model, as NAME, NAMESPACE/NAME or SYSTEM/NAMESPACE/NAME; without it everything.
    #[arg(value_name = "MODEL")]
    model: Option<String>,

    #[command(flatten)]
    source: Source,

    #[command(flatten)]
    view: View,
}

/// Prints the explanation.
pub(super) fn run(args: &Args, out: &mut Out) -> Result<Exit, CliError> {
    let loaded = load(&args.source, out)?;
    let world = &loaded.world;
    let namespace = args.view.namespace.as_deref();
    // Everything, where nothing narrows it.
    let chosen: Option<BTreeSet<&ServiceId>> = match (&args.model, namespace) {
        (Some(name), _) => Some(std::iter::once(select::one(world, name, namespace)?).collect()),
        (None, Some(_)) => Some(select::all(world, namespace)),
        (None, None) => None,
    };
    if matches!(args.view.output, Format::Json | Format::Yaml) {
        let document = match &chosen {
            Some(ids) => Document::about(world, &loaded.findings, ids),
            None => Document::new(world, &loaded.findings),
        };
        match args.view.output {
            Format::Yaml => out.yaml(&document)?,
            _ => out.json(&document)?,
        }
        return Ok(Exit::Done);
    }
    let findings: Vec<&Finding> = match &chosen {
        Some(ids) => document::Index::new(&loaded.findings).about(world, ids),
        None => loaded.findings.iter().collect(),
    };
    let ids = chosen.unwrap_or_else(|| select::all(world, None));
    text(world, &findings, &ids, args.view.output == Format::Wide, out)?;
    Ok(Exit::Done)
}

fn text(world: &World, findings: &[&Finding], ids: &BTreeSet<&ServiceId>, wide: bool, out: &mut Out) -> Result<(), CliError> {
    let services: Vec<(&ServiceId, &ModelService)> = ids.iter().filter_map(|id| Some((*id, world.services.get(*id)?))).collect();
    out.line(&sentence(world, findings, &services))?;
    for finding in findings {
        out.line("")?;
        let subjects: Vec<String> = finding.subjects.iter().map(ToString::to_string).collect();
        out.line(&format!("{}  {}  {}", finding.severity.word().to_uppercase(), finding.code, subjects.join(" ")))?;
        out.line(&format!("  {}", finding.summary))?;
        let shown = if wide { finding.evidence.len() } else { MAX_EVIDENCE };
        for evidence in finding.evidence.iter().take(shown) {
            out.line(&format!("  proof: {}", document::evidence(evidence)))?;
        }
        if let Some(more @ 1..) = finding.evidence.len().checked_sub(shown) {
            out.line(&format!("  proof: {more} more, with -o wide"))?;
        }
        finding.remedies.iter().try_for_each(|remedy| out.line(&format!("  do: {remedy}")))?;
        finding.not.iter().try_for_each(|not| out.line(&format!("  not: {not}")))?;
    }
    for (id, service) in services {
        out.line("")?;
        let found = &service.claim.found_by;
        out.line(&format!("{}/{}  {}  {}", id.namespace, id.name, id.system, service.state.shout()))?;
        if wide {
            out.line(&format!("  found by {}", document::evidence(found)))?;
        }
        for role in &service.roles {
            self::role(world, role, wide, out)?;
        }
    }
    Ok(())
}

/// The worst thing in one true sentence.
fn sentence(world: &World, findings: &[&Finding], services: &[(&ServiceId, &ModelService)]) -> String {
    let services: Vec<&ModelService> = services.iter().map(|(_, service)| *service).collect();
    let headline = headline(world, findings, &services);
    let more = match findings.len().saturating_sub(usize::from(headline.is_finding)) {
        0 => String::new(),
        1 if headline.is_finding => " (and 1 more finding)".to_owned(),
        n if headline.is_finding => format!(" (and {n} more findings)"),
        1 => " (and 1 finding)".to_owned(),
        n => format!(" (and {n} findings)"),
    };
    let unread = match world.problems.len() {
        0 => String::new(),
        1 => " (1 input could not be read whole: what it holds is not judged)".to_owned(),
        n => format!(" ({n} inputs could not be read whole: what they hold is not judged)"),
    };
    let unread = if headline.text.contains("could not be read whole") { String::new() } else { unread };
    let mark = match headline.tone {
        Tone::Critical => "CRITICAL: ",
        Tone::Warning => "WARNING: ",
        Tone::Info => "INFO: ",
        Tone::Unproven => "NOT PROVEN: ",
        Tone::Good => "OK: ",
    };
    format!("{mark}{}{more}{unread}", headline.text)
}

fn role(world: &World, role: &Role, wide: bool, out: &mut Out) -> Result<(), CliError> {
    out.line(&format!("  {}  {}", role.kind, role.state.shout()))?;
    out.line(&format!("    {}", words::named_funnel(&role.funnel)))?;
    for why in words::unknown_steps(&role.funnel) {
        out.line(&format!("    {} {why}", words::UNKNOWN))?;
    }
    out.line(&format!("    bottleneck: {}", words::bottleneck(world, role)))?;
    for why in role.why.iter().filter(|_| wide) {
        out.line(&format!("    {why}"))?;
    }
    let replicas: Vec<_> = role.replicas.iter().filter_map(|replica| world.replicas.get(replica)).collect();
    if replicas.is_empty() {
        return Ok(());
    }
    let rows: Vec<Vec<String>> = replicas
        .iter()
        .map(|replica| {
            vec![
                replica.subject.as_str().split_once('/').map_or(replica.subject.as_str(), |(_, rest)| rest).to_owned(),
                replica.state.shout(),
                replica.ladder.stage().to_string(),
                words::since(world, replica),
                words::loaded(replica, |load| &load.running, words::number),
                words::loaded(replica, |load| &load.waiting, words::number),
                words::loaded(replica, |load| &load.kv_usage, words::share),
                replica.eta_s.as_ref().map_or_else(|_| words::UNKNOWN.to_owned(), |eta| crate::model::time::span(*eta as i64)),
            ]
        })
        .collect();
    let columns = out.columns().map(|columns| columns.saturating_sub(4));
    let headings = ["REPLICA", "STATE", "STAGE", "SINCE", "RUNNING", "WAITING", "KV", "ETA"];
    for line in table::lines(&headings, &rows, columns) {
        out.line(&format!("    {line}"))?;
    }
    for replica in replicas.iter().filter(|replica| wide || words::needs_words(replica)) {
        let why: Vec<&str> = replica.why.iter().map(String::as_str).chain(replica.slower_than_usual.as_deref()).collect();
        out.line(&format!("    {} is {}: {}", replica.subject.name(), replica.state, why.join("; ")))?;
        for evidence in replica.evidence.iter().filter(|_| wide) {
            out.line(&format!("      proof: {}", document::evidence(evidence)))?;
        }
        if let Ok(report) = &replica.engine
            && let Err(unknown) = &report.load
        {
            out.line(&format!("      {} load unknown: {unknown}", words::UNKNOWN))?;
        }
    }
    Ok(())
}
