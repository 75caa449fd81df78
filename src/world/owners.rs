//! Ownership: who decides a field of an object, with what shows it.
//!
//! Read from owner references, autoscalers' targets, managedFields, the last applied configuration, GitOps labels, and what a watch saw
//! before. Losers leave no trace in managedFields (an Update takes the field from everybody else), so earlier versions count as well.
//! Must not judge whether two writers are a fault: that is `diagnose`.

use std::collections::BTreeSet;
use std::fmt;

use jiff::Timestamp;

use super::World;
use super::scaling::{Scaler, ScalerKind, Works};
use crate::model::object::{Body, Object};
use crate::model::writer::Writer;
use crate::model::{Evidence, Place, Subject};

/// Who decides.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Decider {
    /// An object, by way of the controller that serves it.
    Object(Subject),
    /// A field manager for which no object is known.
    Manager(String),
}

impl fmt::Display for Decider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object(subject) => subject.fmt(f),
            Self::Manager(name) => f.pad(name),
        }
    }
}

/// One field and one who decides it.
#[derive(Debug, Clone, PartialEq)]
pub struct Owned {
    /// Path: `spec.replicas`, `spec.template`; `spec` is the whole object.
    pub field: &'static str,
    /// Who.
    pub writer: Decider,
    /// How it writes: `kube-controller-manager, scale`, `Apply`, `controller owner reference`.
    pub via: String,
    /// What shows it.
    pub evidence: Evidence,
}

/// Field managers of tools that keep an object as a file or chart states it: their next run sets the field again.
const STATING: &[&str] = &[
    "argocd",
    "argo-cd",
    "kustomize-controller",
    "helm-controller",
    "flux",
    "helm",
    "kubectl-client-side-apply",
    "terraform",
    "pulumi",
    "kapp",
    "fleetagent",
    "config-sync",
    "configsync",
    "configmanagement",
];

/// Whether a field manager states fields from a file, chart or repository, rather than setting them once. An Apply always does.
pub fn states_fields(writer: &Writer) -> bool {
    let lower = writer.manager.to_ascii_lowercase();
    writer.operation == "Apply" || STATING.iter().any(|prefix| lower.starts_with(prefix))
}

/// Whether a field manager is a person's tool: `kubectl`, `k9s`, an editor.
pub fn is_person(writer: &Writer) -> bool {
    let lower = writer.manager.to_ascii_lowercase();
    !states_fields(writer)
        && ["kubectl", "k9s", "lens", "headlamp", "mozilla", "rancher", "oc", "openshift-console"]
            .iter()
            .any(|tool| lower.strip_prefix(tool).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.', '/', '_'])))
}

/// One version of an object in which `spec.replicas` differs from the version before it.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplicaWrite {
    /// When it was seen (not when it was written: a write through `/scale` has no time).
    pub at: Timestamp,
    /// The new number.
    pub replicas: u32,
    /// Whether it is the first version seen: nobody is known to have written it then.
    pub first: bool,
    /// Who owned the field in that version.
    pub writers: Vec<Writer>,
}

impl World {
    /// Who decides the fields of an object. The order is that of trust: owners, autoscalers, managers, hints.
    pub fn owners_of(&self, subject: &Subject) -> Vec<Owned> {
        let mut out: Vec<Owned> = Vec::new();
        let object = self.objects.get(subject);
        if let Some(object) = object {
            self.by_reference(subject, object, &mut out);
        }
        if let Some(scaling) = self.scaling.get(subject) {
            out.extend(scaling.scalers.iter().filter_map(|scaler| by_scaler(self, subject, scaler)));
            out.extend(unread_makers(self, subject));
        }
        if let Some(object) = object {
            self.by_managers(subject, object, &mut out);
            by_hints(subject, object, &mut out);
        }
        let mut seen = BTreeSet::new();
        out.retain(|owned| seen.insert((owned.field, owned.writer.clone(), owned.via.clone())));
        out
    }

    fn by_reference(&self, subject: &Subject, object: &Object, out: &mut Vec<Owned>) {
        let Some(owner) = object.meta.controller() else { return };
        let owner = owner.subject(&object.meta.namespace);
        let mut add = |field| {
            out.push(Owned {
                field,
                writer: Decider::Object(owner.clone()),
                via: "controller owner reference".into(),
                evidence: Evidence::field(subject, "metadata.ownerReferences", owner.to_string()).of_uid(&object.meta.uid),
            });
        };
        add("spec");
        if matches!(object.body, Body::Workload(_)) && super::levels::parent_sets_replicas(&self.objects, object).is_some() {
            add("spec.replicas");
        }
    }

    fn by_managers(&self, subject: &Subject, object: &Object, out: &mut Vec<Owned>) {
        for writer in object.meta.writers.iter().filter(|writer| writer.subresource != "status") {
            for field in ["spec.replicas", "spec.template"] {
                if !owns(writer, field) || (field == "spec.replicas" && self.explained(subject, writer)) {
                    continue;
                }
                let mut owned = by_writer(subject, field, writer, writer.time, "metadata.managedFields");
                // What the controller of its owner writes, its owner decides.
                if let Some(owner) = object.meta.controller().filter(|_| controller_of(object, writer)) {
                    owned.via = format!("{}, {}", writer.manager, owned.via);
                    owned.writer = Decider::Object(owner.subject(&object.meta.namespace));
                }
                out.push(owned);
            }
        }
        // Who wrote the number before and lost it since.
        for write in self.replica_writes(subject).iter().rev() {
            for writer in write.writers.iter().filter(|writer| !self.explained(subject, writer) && !controller_of(object, writer)) {
                let known =
                    out.iter().any(|owned| owned.field == "spec.replicas" && owned.writer == Decider::Manager(writer.manager.clone()));
                if !known {
                    let at = writer.time.unwrap_or(write.at);
                    let mut owned = by_writer(subject, "spec.replicas", writer, Some(at), "spec.replicas");
                    owned.via = format!("{}, wrote {} at {at}", owned.via, write.replicas);
                    owned.evidence.value = format!("{} by {}", write.replicas, writer.manager);
                    out.push(owned);
                }
            }
        }
        if let Some(stated) = object.meta.applied_replicas {
            let manager = "kubectl-client-side-apply";
            if !out.iter().any(|owned| owned.field == "spec.replicas" && owned.writer == Decider::Manager(manager.into())) {
                out.push(Owned {
                    field: "spec.replicas",
                    writer: Decider::Manager(manager.into()),
                    via: format!("the last applied configuration states {stated}"),
                    evidence: Evidence::field(
                        subject,
                        "metadata.annotations[kubectl.kubernetes.io/last-applied-configuration]",
                        format!("spec.replicas: {stated}"),
                    ),
                });
            }
        }
    }

    /// Whether a writer of `spec.replicas` is the hand of one of its autoscalers.
    pub fn explained(&self, target: &Subject, writer: &Writer) -> bool {
        self.hand_of(target, writer).is_some()
    }

    /// The autoscaler for which a field manager writes `/scale`: an HPA's is kube-controller-manager, KEDA's is `keda`.
    pub fn hand_of(&self, target: &Subject, writer: &Writer) -> Option<&Scaler> {
        let lower = writer.manager.to_ascii_lowercase();
        let scaling = self.scaling.get(target)?;
        let of = |kind: ScalerKind| scaling.scalers.iter().find(|scaler| scaler.kind == kind);
        if writer.subresource == "scale" {
            let keda = lower == "keda" || lower.starts_with("keda-");
            return match (keda, lower.contains("controller-manager")) {
                (true, _) => of(ScalerKind::Keda),
                (false, true) => of(ScalerKind::Hpa),
                (false, false) if lower == "manager" => of(ScalerKind::Variant),
                _ => None,
            };
        }
        // AIBrix writes the object itself, not its /scale.
        (lower.contains("aibrix") || lower == "manager").then(|| of(ScalerKind::PodAutoscaler)).flatten()
    }

    /// The versions of an object in which its replicas changed, oldest first, as a watch saw them; the first that it saw is the first.
    pub fn replica_writes(&self, subject: &Subject) -> Vec<ReplicaWrite> {
        let mut out: Vec<ReplicaWrite> = Vec::new();
        let mut changes: Vec<_> = self.history.get(subject).into_iter().flatten().filter(|change| change.event != "DELETED").collect();
        changes.sort_by_key(|change| change.at);
        let versions = changes.iter().map(|change| (change.at, &change.object));
        let present = self.objects.get(subject).map(|object| (object.seen, object));
        for (at, object) in versions.chain(present.filter(|_| !changes.is_empty())) {
            let Some(replicas) = replicas_of(object) else { continue };
            if out.last().is_none_or(|last| last.replicas != replicas) {
                let writers = object.meta.writers.iter().filter(|writer| writer.subresource != "status" && owns(writer, "spec.replicas"));
                out.push(ReplicaWrite { at, replicas, first: out.is_empty(), writers: writers.cloned().collect() });
            }
        }
        out
    }

    /// The HPAs and the like that steer an object now, not counting those that only publish a number or do not work.
    pub fn working_scalers<'a>(&'a self, target: &Subject) -> impl Iterator<Item = &'a Scaler> {
        self.scaling
            .get(target)
            .into_iter()
            .flat_map(|scaling| &scaling.scalers)
            .filter(|scaler| scaler.kind != ScalerKind::Variant && scaler.works == Ok(Works::On))
    }
}

/// `spec.replicas` of a workload or of any object that has such a field.
pub fn replicas_of(object: &Object) -> Option<u32> {
    match &object.body {
        Body::Workload(workload) => workload.replicas.clone().ok(),
        Body::Other(body) => u32::try_from(body.get("spec")?.get("replicas")?.as_u64()?).ok(),
        _ => None,
    }
}

/// Whether a manager owns exactly this field or something in it (owning all of `spec` says nothing about one field).
fn owns(writer: &Writer, field: &str) -> bool {
    writer.fields.iter().any(|own| own.strip_prefix(field).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '['])))
}

/// Whether a manager is the controller that the object belongs to anyway: what it writes is its owner's doing.
fn controller_of(object: &Object, writer: &Writer) -> bool {
    object.meta.controller().is_some()
        && !is_person(writer)
        && (writer.operation != "Apply" || !STATING.iter().any(|tool| writer.manager.to_ascii_lowercase().starts_with(tool)))
}

fn by_writer(subject: &Subject, field: &'static str, writer: &Writer, at: Option<Timestamp>, place: &str) -> Owned {
    let how = match writer.subresource.as_str() {
        "" => writer.operation.clone(),
        subresource => format!("{}, {subresource}", writer.operation),
    };
    Owned {
        field,
        writer: Decider::Manager(writer.manager.clone()),
        evidence: Evidence::new(subject, Place::Field(place.to_owned()), format!("{} ({how}) owns {field}", writer.manager), at),
        via: how,
    }
}

/// The autoscaler as an owner. An HPA that something made is named beside its maker, which decides.
fn by_scaler(world: &World, target: &Subject, scaler: &Scaler) -> Option<Owned> {
    let made = world.scaling.get(target)?.made(&scaler.subject).next();
    let via = match (scaler.kind, made) {
        (ScalerKind::Hpa, _) => match maker(world, scaler) {
            Some(maker) => format!("kube-controller-manager, scale; as {maker} says"),
            None => "kube-controller-manager, scale".to_owned(),
        },
        (ScalerKind::Keda, Some(hpa)) => format!("{} (kube-controller-manager, scale); keda, scale between 0 and 1", hpa.subject),
        (ScalerKind::Keda, None) => "keda, scale".to_owned(),
        (ScalerKind::PodAutoscaler, Some(hpa)) => format!("{} (kube-controller-manager, scale)", hpa.subject),
        (ScalerKind::PodAutoscaler, None) => "the AIBrix controller, spec.replicas".to_owned(),
        // It publishes a number; the HPA that reads it writes.
        (ScalerKind::Variant, _) => return None,
    };
    let paused = if scaler.works == Ok(Works::Paused) { "; held: it is paused" } else { "" };
    Some(Owned {
        field: "spec.replicas",
        writer: Decider::Object(scaler.subject.clone()),
        via: format!("{via}{paused}"),
        evidence: Evidence::field(&scaler.subject, "spec.scaleTargetRef", target.to_string()),
    })
}

/// The autoscaler or controller that made an HPA, read or only named.
fn maker(world: &World, scaler: &Scaler) -> Option<Subject> {
    let named = || {
        let object = world.objects.get(&scaler.subject)?;
        Some(object.meta.controller()?.subject(&object.meta.namespace))
    };
    scaler.made_by.clone().or_else(named)
}

/// The makers of HPAs that were only named: they decide, and nothing more is known of them.
fn unread_makers(world: &World, target: &Subject) -> Vec<Owned> {
    let Some(scaling) = world.scaling.get(target) else { return Vec::new() };
    let hpas = scaling.roots().filter(|scaler| scaler.kind == ScalerKind::Hpa);
    hpas.filter_map(|scaler| {
        let maker = maker(world, scaler)?;
        Some(Owned {
            field: "spec.replicas",
            writer: Decider::Object(maker.clone()),
            via: format!("{} (kube-controller-manager, scale)", scaler.subject),
            evidence: Evidence::field(&scaler.subject, "metadata.ownerReferences", maker.to_string()),
        })
    })
    .collect()
}

/// Labels and annotations by which GitOps tools and helm mark what they keep. A hint: labels are copied easily.
fn by_hints(subject: &Subject, object: &Object, out: &mut Vec<Owned>) {
    let meta = &object.meta;
    let mut add = |writer: String, place: &str, value: &str| {
        out.push(Owned {
            field: "spec",
            writer: Decider::Manager(writer),
            via: format!("marked by {place}"),
            evidence: Evidence::field(subject, place, value),
        });
    };
    if let Some(id) = meta.annotation("argocd.argoproj.io/tracking-id") {
        let app = id.split(':').next().unwrap_or_default();
        add(format!("argocd application {app}"), "metadata.annotations[argocd.argoproj.io/tracking-id]", id);
    }
    for (tool, word) in [("kustomize", "kustomization"), ("helm", "helmrelease")] {
        let key = format!("{tool}.toolkit.fluxcd.io/name");
        if let Some(name) = meta.label(&key) {
            let namespace = meta.label(&format!("{tool}.toolkit.fluxcd.io/namespace")).unwrap_or_default();
            add(Subject::object(word, namespace, name).to_string(), &format!("metadata.labels[{key}]"), name);
        }
    }
    if let Some(release) = meta.annotation("meta.helm.sh/release-name") {
        add(format!("helm release {release}"), "metadata.annotations[meta.helm.sh/release-name]", release);
    }
}

#[cfg(test)]
#[path = "owners_tests.rs"]
mod tests;
