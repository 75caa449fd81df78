//! `status`: one line a role.

use serde::Serialize;

use super::args::{Format, Source, View};
use super::document::Index;
use super::error::CliError;
use super::exit::Exit;
use super::load::load;
use super::out::Out;
use super::{select, table, words};
use crate::model::Subject;
use crate::model::funnel::Step;
use crate::model::service::{ModelService, Role, RoleKind, ServiceId};
use crate::world::World;

/// Show every model and role in one line: state, counts, what it lacks, load.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    source: Source,

    #[command(flatten)]
    view: View,
}

/// One role.
#[derive(Debug, Serialize)]
struct Row {
    namespace: String,
    model: String,
    system: &'static str,
    role: String,
    state: &'static str,
    /// Counts by step; absent where unknown.
    funnel: std::collections::BTreeMap<&'static str, u32>,
    bottleneck: String,
    load: String,
    workloads: Vec<Subject>,
    findings: usize,
    #[serde(skip)]
    shown: Shown,
}

/// Cells that only text has.
#[derive(Debug)]
struct Shown {
    funnel: String,
    sleeping: String,
    draining: String,
    gpus: String,
    engines: String,
    fronts: String,
}

/// Prints the roles.
pub(super) fn run(args: &Args, out: &mut Out) -> Result<Exit, CliError> {
    let loaded = load(&args.source, out)?;
    let namespace = args.view.namespace.as_deref();
    let ids = select::all(&loaded.world, namespace);
    let index = Index::new(&loaded.findings);
    let rows: Vec<Row> = ids
        .iter()
        .filter_map(|id| Some((*id, loaded.world.services.get(*id)?)))
        .flat_map(|(id, service)| rows(&loaded.world, &index, id, service))
        .collect();
    match args.view.output {
        Format::Json => out.json(&rows)?,
        Format::Yaml => out.yaml(&rows)?,
        format => text(&rows, format == Format::Wide, out)?,
    }
    Ok(Exit::Done)
}

fn text(rows: &[Row], wide: bool, out: &mut Out) -> Result<(), CliError> {
    if rows.is_empty() {
        return out.line("no model service here: no workload that runs an engine was found");
    }
    let mut headings = vec!["MODEL", "SYSTEM", "ROLE", "STATE", "FUNNEL", "BOTTLENECK", "LOAD"];
    if wide {
        headings.extend(["SLEEPING", "DRAINING", "GPUS", "ENGINE", "FINDINGS", "WORKLOADS", "FRONTS"]);
    }
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            let mut cells = vec![
                format!("{}/{}", row.namespace, row.model),
                row.system.to_owned(),
                row.role.clone(),
                row.state.to_ascii_uppercase(),
                row.shown.funnel.clone(),
                row.bottleneck.clone(),
                row.load.clone(),
            ];
            if wide {
                let workloads: Vec<&str> = row.workloads.iter().map(Subject::as_str).collect();
                let shown = &row.shown;
                cells.extend([shown.sleeping.clone(), shown.draining.clone(), shown.gpus.clone(), shown.engines.clone()]);
                cells.extend([row.findings.to_string(), workloads.join(" "), shown.fronts.clone()]);
            }
            cells
        })
        .collect();
    for line in table::lines(&headings, &cells, out.columns()) {
        out.line(&line)?;
    }
    out.line(&format!("funnel: {}, {} is unknown", words::LEGEND, words::UNKNOWN))
}

fn rows(world: &World, index: &Index, id: &ServiceId, service: &ModelService) -> Vec<Row> {
    let findings = index.about(world, &std::iter::once(id).collect()).len();
    let fronts: Vec<&str> = service.claim.fronts.iter().map(Subject::as_str).collect();
    let routers = service.claim.routers.iter().filter_map(|router| {
        let view = world.workloads.get(router)?;
        Some(Role {
            kind: RoleKind::Router,
            workloads: vec![router.clone()],
            replicas: view.replicas.clone(),
            left_over: view.left_over.clone(),
            proven: view.proven.clone(),
            funnel: view.funnel.clone(),
            state: view.state,
            why: view.why.clone(),
        })
    });
    service.roles.iter().cloned().chain(routers).map(|role| row(world, id, &role, findings, fronts.join(" "))).collect()
}

fn row(world: &World, id: &ServiceId, role: &Role, findings: usize, fronts: String) -> Row {
    let replicas: Vec<_> = role.replicas.iter().filter_map(|replica| world.replicas.get(replica)).collect();
    let mut engines: Vec<&str> =
        replicas.iter().filter_map(|replica| Some(replica.engine.as_ref().ok()?.kind.as_ref().ok()?.word())).collect();
    engines.sort_unstable();
    engines.dedup();
    let gpus = replicas.iter().map(|replica| replica.gpus).fold(0, u32::saturating_add);
    Row {
        namespace: id.namespace.clone(),
        model: id.name.clone(),
        system: id.system,
        role: role.kind.to_string(),
        state: role.state.word(),
        funnel: Step::ALL.into_iter().filter_map(|step| Some((step.word(), *role.funnel.step(step).as_ref().ok()?))).collect(),
        bottleneck: words::bottleneck(world, role),
        load: words::load(world, role),
        workloads: role.workloads.clone(),
        findings,
        shown: Shown {
            funnel: words::funnel(&role.funnel),
            sleeping: words::count(&role.funnel.sleeping),
            draining: words::count(&role.funnel.draining),
            gpus: if role.funnel.existing.is_ok() { gpus.to_string() } else { words::UNKNOWN.to_owned() },
            engines: if engines.is_empty() { words::UNKNOWN.to_owned() } else { engines.join(" ") },
            fronts,
        },
    }
}
