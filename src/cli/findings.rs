//! `findings`: what is wrong or risky.

use clap::ValueEnum;

use super::args::{Format, Source, View};
use super::document::Shown;
use super::error::CliError;
use super::exit::Exit;
use super::load::load;
use super::out::Out;
use super::{select, table};
use crate::diagnose::headline::headline;
use crate::model::service::ModelService;
use crate::model::state::WorkloadState;
use crate::model::{Finding, Severity};

/// List what is wrong or risky, worst first.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    source: Source,

    #[command(flatten)]
    view: View,

    /// End with exit code 1 if there is a finding of this severity or a worse one, or if nothing of a role serves.
    #[arg(long, value_name = "SEVERITY", value_enum)]
    fail_on: Option<Least>,
}

/// How bad a finding must be.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Least {
    /// Requests are lost or soon will be, or nothing can go on.
    Critical,
    /// Capacity or safety is lost.
    Warning,
    /// Anything worth knowing.
    Info,
}

impl Least {
    fn severity(self) -> Severity {
        match self {
            Self::Critical => Severity::Critical,
            Self::Warning => Severity::Warning,
            Self::Info => Severity::Info,
        }
    }
}

/// Prints the findings.
pub(super) fn run(args: &Args, out: &mut Out) -> Result<Exit, CliError> {
    let loaded = load(&args.source, out)?;
    let namespace = args.view.namespace.as_deref();
    let findings: Vec<&Finding> = loaded.findings.iter().filter(|finding| inside(finding, namespace)).collect();
    match args.view.output {
        Format::Json => out.json(&findings.iter().map(|finding| Shown::from(*finding)).collect::<Vec<_>>())?,
        Format::Yaml => out.yaml(&findings.iter().map(|finding| Shown::from(*finding)).collect::<Vec<_>>())?,
        format => {
            text(&findings, format == Format::Wide, out)?;
            // What no rule speaks of is said all the same: the list is read as "what is wrong".
            let shown: Vec<&ModelService> =
                loaded.world.services.values().filter(|service| select::within(&service.claim.id.namespace, namespace)).collect();
            let headline = headline(&loaded.world, &findings, &shown);
            if !headline.is_finding {
                out.line(&headline.text)?;
            }
        }
    }
    // A role of which nothing serves is as bad as a critical finding, whether a rule speaks of it or not.
    let mut shown = loaded.world.services.values().filter(|service| select::within(&service.claim.id.namespace, namespace));
    let down = shown.any(|service| service.roles.iter().any(|role| role.state == WorkloadState::Down));
    // Worse severities are smaller.
    let bad = args.fail_on.is_some_and(|least| down || findings.iter().any(|finding| finding.severity <= least.severity()));
    Ok(if bad { Exit::Found } else { Exit::Done })
}

/// Whether a finding is shown: without a namespace all are, with one those that name something in it.
fn inside(finding: &Finding, namespace: Option<&str>) -> bool {
    namespace.is_none() || finding.subjects.iter().any(|subject| select::within(subject.namespace(), namespace))
}

fn text(findings: &[&Finding], wide: bool, out: &mut Out) -> Result<(), CliError> {
    if findings.is_empty() {
        return out.line("no findings");
    }
    let mut headings = vec!["SEVERITY", "CODE", "SUBJECTS", "SUMMARY"];
    if wide {
        headings.extend(["EVIDENCE", "REMEDIES", "NOT"]);
    }
    let rows: Vec<Vec<String>> = findings
        .iter()
        .map(|finding| {
            let subjects: Vec<String> = finding.subjects.iter().map(ToString::to_string).collect();
            let mut row = vec![finding.severity.to_string(), finding.code.to_string(), subjects.join(" "), finding.summary.clone()];
            if wide {
                let evidence: Vec<String> = finding.evidence.iter().map(super::document::evidence).collect();
                row.extend([evidence.join("; "), finding.remedies.join("; "), finding.not.join("; ")]);
            }
            row
        })
        .collect();
    table::lines(&headings, &rows, out.columns()).iter().try_for_each(|line| out.line(line))
}
