//! Who decides a field: read from managedFields, owner references and autoscalers' targets.

use std::collections::BTreeMap;

use super::entry::{Ownership, Subjects};
use crate::model::Subject;
use crate::model::object::{Body, Object};
use crate::model::writer::Writer;
use crate::world::World;

/// Fields about which people ask.
const FIELDS: &[&str] = &["spec.replicas", "spec.template"];

/// Field managers of people and of tools that act for them: never the controller that owns an object.
const PEOPLE: &[&str] =
    &["kubectl", "argocd", "argo-cd", "flux", "kustomize-controller", "helm", "terraform", "pulumi", "k9s", "lens", "rancher"];

/// Adds the owners of every object.
pub(super) fn add(world: &World, subjects: &mut Subjects) {
    let scalers = scalers(world);
    for (subject, object) in world.objects.all() {
        if matches!(object.body, Body::Event(_)) {
            continue;
        }
        let mut owners = Vec::new();
        if let Some(owner) = object.meta.controller() {
            owners.push(Ownership {
                field: "spec".into(),
                writer: owner.subject(&object.meta.namespace).to_string(),
                via: "controller owner reference".into(),
            });
        }
        for writer in object.meta.writers.iter().filter(|writer| writer.subresource != "status") {
            for field in FIELDS.iter().filter(|field| writer.fields.iter().any(|own| own == *field || below(field, own))) {
                owners.extend(deciders(scalers.get(subject), object, writer).into_iter().map(|(decider, via)| Ownership {
                    field: (*field).to_owned(),
                    writer: decider,
                    via,
                }));
            }
        }
        if !owners.is_empty() {
            owners.sort();
            owners.dedup();
            subjects.at(subject).owners.extend(owners);
        }
    }
}

fn below(field: &str, own: &str) -> bool {
    own.strip_prefix(field).is_some_and(|rest| rest.starts_with(['.', '[']))
}

/// HPAs and ScaledObjects by what they scale.
fn scalers(world: &World) -> BTreeMap<Subject, Vec<&Object>> {
    let mut scalers: BTreeMap<Subject, Vec<&Object>> = BTreeMap::new();
    for (object, hpa) in world.objects.hpas() {
        scalers.entry(hpa.target.subject(&object.meta.namespace)).or_default().push(object);
    }
    for (object, scaled) in world.objects.scaled_objects() {
        scalers.entry(scaled.target.subject(&object.meta.namespace)).or_default().push(object);
    }
    scalers
}

/// The objects for which a field manager acts; the manager itself where no object is known.
fn deciders(scalers: Option<&Vec<&Object>>, object: &Object, writer: &Writer) -> Vec<(String, String)> {
    let lower = writer.manager.to_ascii_lowercase();
    let how = match writer.subresource.as_str() {
        "" => writer.operation.clone(),
        subresource => subresource.to_owned(),
    };
    let via = format!("{}, {how}", writer.manager);
    let mut deciders: Vec<(String, String)> = Vec::new();
    if writer.subresource == "scale" {
        for scaler in scalers.into_iter().flatten() {
            match &scaler.body {
                Body::Hpa(_) if lower == "kube-controller-manager" => {
                    deciders.push((scaler.subject().to_string(), via.clone()));
                    // KEDA's HPA does what its ScaledObject says.
                    if let Some(owner) = scaler.meta.controller() {
                        let owner = owner.subject(&scaler.meta.namespace);
                        deciders.push((owner.to_string(), format!("{via}, by {}", scaler.subject())));
                    }
                }
                Body::ScaledObject(_) if lower.contains("keda") => deciders.push((scaler.subject().to_string(), via.clone())),
                _ => {}
            }
        }
    } else if let Some(owner) = object.meta.controller()
        && writer.operation != "Apply"
        && !PEOPLE.iter().any(|people| lower.starts_with(people))
    {
        deciders.push((owner.subject(&object.meta.namespace).to_string(), via.clone()));
    }
    if deciders.is_empty() {
        deciders.push((writer.manager.clone(), how));
    }
    deciders
}
