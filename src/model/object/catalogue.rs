//! The catalogue: every object that is seen, by subject, with the look-ups that all readers share.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::autoscale::{Hpa, ScaledObject};
use super::cluster::{Budget, Event, Lease, Node};
use super::network::{EndpointSlice, InferencePool, Route, Service};
use super::pod::Pod;
use super::workload::Workload;
use super::{Body, Object};
use crate::model::Subject;

/// All objects of one snapshot, in the order of their subjects.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    objects: BTreeMap<Subject, Arc<Object>>,
    /// The same by the shape of their body, so that nobody walks over all objects to find the few of a kind.
    by_shape: BTreeMap<u8, Vec<Arc<Object>>>,
    /// Pods by (namespace, controller's subject).
    by_owner: BTreeMap<Subject, Vec<Subject>>,
    /// Events by what they are about.
    events: BTreeMap<Subject, Vec<Subject>>,
}

/// One number a shape of body.
#[allow(non_upper_case_globals)]
mod shape {
    pub(super) const Pod: u8 = 0;
    pub(super) const Workload: u8 = 1;
    pub(super) const Service: u8 = 2;
    pub(super) const EndpointSlice: u8 = 3;
    pub(super) const InferencePool: u8 = 4;
    pub(super) const Route: u8 = 5;
    pub(super) const Hpa: u8 = 6;
    pub(super) const ScaledObject: u8 = 7;
    pub(super) const Node: u8 = 8;
    pub(super) const Lease: u8 = 9;
    pub(super) const Budget: u8 = 10;

    pub(super) fn of(body: &super::Body) -> Option<u8> {
        use super::Body;
        Some(match body {
            Body::Pod(_) => Pod,
            Body::Workload(_) => Workload,
            Body::Service(_) => Service,
            Body::EndpointSlice(_) => EndpointSlice,
            Body::InferencePool(_) => InferencePool,
            Body::Route(_) => Route,
            Body::Hpa(_) => Hpa,
            Body::ScaledObject(_) => ScaledObject,
            Body::Node(_) => Node,
            Body::Lease(_) => Lease,
            Body::Budget(_) => Budget,
            Body::Event(_) | Body::Claim(_) | Body::Other(_) => return None,
        })
    }
}

macro_rules! typed {
    ($(#[$doc:meta])* $many:ident, $one:ident, $kind:ident, $type:ty) => {
        $(#[$doc])*
        pub fn $many(&self) -> impl Iterator<Item = (&Object, &$type)> {
            self.by_shape.get(&shape::$kind).into_iter().flatten().filter_map(|object| match &object.body {
                Body::$kind(body) => Some((object.as_ref(), &*body as &$type)),
                _ => None,
            })
        }

        /// One of them by subject.
        pub fn $one(&self, subject: &Subject) -> Option<(&Object, &$type)> {
            self.objects.get(subject).and_then(|object| match &object.body {
                Body::$kind(body) => Some((object.as_ref(), &*body as &$type)),
                _ => None,
            })
        }
    };
}

impl Catalogue {
    /// A catalogue of these objects. Of two with the same subject the later one stays.
    pub fn new(objects: impl IntoIterator<Item = Arc<Object>>) -> Self {
        let objects: BTreeMap<Subject, Arc<Object>> = objects.into_iter().map(|object| (object.subject(), object)).collect();
        let mut by_owner: BTreeMap<Subject, Vec<Subject>> = BTreeMap::new();
        let mut events: BTreeMap<Subject, Vec<Subject>> = BTreeMap::new();
        let mut by_shape: BTreeMap<u8, Vec<Arc<Object>>> = BTreeMap::new();
        for (subject, object) in &objects {
            if let Some(shape) = shape::of(&object.body) {
                by_shape.entry(shape).or_default().push(Arc::clone(object));
            }
            if let Some(owner) = object.meta.controller() {
                by_owner.entry(owner.subject(&object.meta.namespace)).or_default().push(subject.clone());
            }
            if let Body::Event(event) = &object.body {
                events.entry(event.about.clone()).or_default().push(subject.clone());
            }
        }
        Self { objects, by_shape, by_owner, events }
    }

    /// Any object.
    pub fn get(&self, subject: &Subject) -> Option<&Object> {
        self.objects.get(subject).map(Arc::as_ref)
    }

    /// All objects.
    pub fn all(&self) -> impl Iterator<Item = (&Subject, &Object)> {
        self.objects.iter().map(|(subject, object)| (subject, object.as_ref()))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    typed!(/** Pods. */ pods, pod, Pod, Pod);
    typed!(/** Workloads of every kind, ReplicaSets included. */ workloads, workload, Workload, Workload);
    typed!(/** Services. */ services, service, Service, Service);
    typed!(/** EndpointSlices. */ slices, slice, EndpointSlice, EndpointSlice);
    typed!(/** InferencePools. */ pools, pool, InferencePool, InferencePool);
    typed!(/** HTTPRoutes and GRPCRoutes. */ routes, route, Route, Route);
    typed!(/** HorizontalPodAutoscalers. */ hpas, hpa, Hpa, Hpa);
    typed!(/** ScaledObjects. */ scaled_objects, scaled_object, ScaledObject, ScaledObject);
    typed!(/** Nodes. */ nodes, node, Node, Node);
    typed!(/** Leases. */ leases, lease, Lease, Lease);
    typed!(/** PodDisruptionBudgets. */ budgets, budget, Budget, Budget);

    /// Objects whose controller is this one.
    pub fn owned_by(&self, owner: &Subject) -> &[Subject] {
        self.by_owner.get(owner).map_or(&[], Vec::as_slice)
    }

    /// Events about this object, oldest first.
    pub fn events_about(&self, subject: &Subject) -> Vec<(&Object, &Event)> {
        let mut events: Vec<_> = self
            .events
            .get(subject)
            .into_iter()
            .flatten()
            .filter_map(|event| match self.objects.get(event).map(Arc::as_ref) {
                Some(object @ Object { body: Body::Event(event), .. }) => Some((object, event)),
                _ => None,
            })
            .collect();
        events.sort_by_key(|(_, event)| event.last);
        events
    }

    /// Autoscalers (HPAs and ScaledObjects) by what they scale.
    pub fn autoscalers(&self) -> BTreeMap<Subject, Vec<Subject>> {
        let mut out: BTreeMap<Subject, Vec<Subject>> = BTreeMap::new();
        let hpas = self.hpas().map(|(object, hpa)| (object, hpa.target.subject(&object.meta.namespace)));
        let scaled = self.scaled_objects().map(|(object, scaled)| (object, scaled.target.subject(&object.meta.namespace)));
        for (object, target) in hpas.chain(scaled) {
            out.entry(target).or_default().push(object.subject());
        }
        out
    }

    /// Slices of a Service.
    pub fn slices_of<'a>(&'a self, namespace: &'a str, service: &'a str) -> impl Iterator<Item = (&'a Object, &'a EndpointSlice)> {
        self.slices().filter(move |(object, slice)| object.meta.namespace == namespace && slice.service == service)
    }

    /// Pods of a namespace that a selector matches.
    pub fn pods_matching<'a>(&'a self, namespace: &'a str, selector: &'a super::Selector) -> impl Iterator<Item = (&'a Object, &'a Pod)> {
        self.pods().filter(move |(object, _)| object.meta.namespace == namespace && selector.matches(&object.meta.labels))
    }

    /// The chain of controllers above an object, nearest first. Owners that are only named are in it too. Ends at 8, so that a circle ends.
    pub fn owner_chain(&self, subject: &Subject) -> Vec<Subject> {
        let mut chain: Vec<Subject> = Vec::new();
        let mut at = subject.clone();
        while chain.len() < 8 {
            let Some(owner) = self.get(&at).and_then(|object| Some(object.meta.controller()?.subject(&object.meta.namespace))) else {
                break;
            };
            if chain.contains(&owner) {
                break;
            }
            chain.push(owner.clone());
            at = owner;
        }
        chain
    }
}
