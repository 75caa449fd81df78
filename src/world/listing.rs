//! Which pods a Service or an InferencePool really picks, and which of them its router counts.
//!
//! An InferencePool's router picks Ready pods that its selector matches on a port that they serve; it needs no Service and no
//! EndpointSlice. A Service is what its EndpointSlices say.

use std::collections::{BTreeMap, BTreeSet};

use super::Front;
use super::epp::{Picker, meets};
use super::proxy::{Passing, routes_to};
use super::router::RouterReading;
use crate::model::engine::HttpAnswer;
use crate::model::object::network::ServicePort;
use crate::model::object::{Catalogue, Container, InferencePool, Object, Pod, Service, meta};
use crate::model::service::{Claim, Listing};
use crate::model::unknown::unknown;
use crate::model::{Evidence, Known, Place, Subject, Unknown};
use crate::systems::selection::FrontIndex;

/// Everything that is needed to tell whether a pod is listed.
pub struct Listings<'a> {
    objects: &'a Catalogue,
    /// Pod → fronts that select it.
    selecting: BTreeMap<Subject, Vec<Subject>>,
    /// Front → pods that it selects.
    selected: BTreeMap<Subject, Vec<Subject>>,
    /// Service → (pod name, uid) → ready; absent when the Service has no slice.
    slices: BTreeMap<Subject, BTreeMap<(String, String), (bool, Subject)>>,
    routers: &'a BTreeMap<Subject, RouterReading>,
    pickers: &'a BTreeMap<Subject, Picker>,
    answers: &'a BTreeMap<Subject, Vec<HttpAnswer>>,
    /// Pod → fronts of its model service, whether they select it or not.
    intended: BTreeMap<Subject, Vec<Subject>>,
}

/// Whether Kubernetes calls a pod Ready; a pod being deleted is not.
pub fn pod_ready(object: &Object, pod: &Pod) -> Known<bool> {
    match pod.condition("Ready") {
        Some(condition) => Ok(condition.is_true() && object.meta.deletion.is_none()),
        None if pod.node.is_empty() => Ok(false),
        None => unknown("the pod's status has no Ready condition"),
    }
}

impl<'a> Listings<'a> {
    /// Prepares the look-ups.
    pub fn new(
        objects: &'a Catalogue,
        claims: &[Claim],
        routers: &'a BTreeMap<Subject, RouterReading>,
        pickers: &'a BTreeMap<Subject, Picker>,
        answers: &'a BTreeMap<Subject, Vec<HttpAnswer>>,
    ) -> Self {
        let index = FrontIndex::new(objects);
        let mut selecting: BTreeMap<Subject, Vec<Subject>> = BTreeMap::new();
        let mut selected: BTreeMap<Subject, Vec<Subject>> = BTreeMap::new();
        for (object, _) in objects.services() {
            selected.insert(object.subject(), Vec::new());
        }
        for (object, _) in objects.pools() {
            selected.insert(object.subject(), Vec::new());
        }
        for (object, pod) in objects.pods() {
            if pod.has_ended() {
                continue;
            }
            let fronts = index.selecting(&object.meta.namespace, &object.meta.labels);
            for front in &fronts {
                selected.entry(front.clone()).or_default().push(object.subject());
            }
            selecting.insert(object.subject(), fronts);
        }
        let mut slices: BTreeMap<Subject, BTreeMap<(String, String), (bool, Subject)>> = BTreeMap::new();
        for (object, slice) in objects.slices().filter(|(_, slice)| !slice.service.is_empty()) {
            let service = Subject::object("service", &object.meta.namespace, &slice.service);
            let endpoints = slices.entry(service).or_default();
            for endpoint in &slice.endpoints {
                let Some(pod) = &endpoint.pod else { continue };
                let entry = endpoints.entry((pod.clone(), endpoint.uid.clone())).or_insert((false, object.subject()));
                // An endpoint may stand in several slices (one per address family): ready in one is ready.
                if endpoint.ready && !entry.0 {
                    *entry = (true, object.subject());
                }
            }
        }
        let mut intended: BTreeMap<Subject, Vec<Subject>> = BTreeMap::new();
        let empty: BTreeSet<&Subject> = selected.iter().filter(|(_, pods)| pods.is_empty()).map(|(front, _)| front).collect();
        for claim in claims {
            for replica in claim.roles.iter().flat_map(|role| &role.replicas) {
                for pod in &replica.pods {
                    let mut fronts = claim.fronts.clone();
                    if fronts.is_empty() {
                        fronts = meant_for(objects, &empty, claim, pod);
                    }
                    intended.insert(pod.clone(), fronts);
                }
            }
        }
        Self { objects, selecting, selected, slices, routers, pickers, answers, intended }
    }

    /// Counts of a front.
    pub fn front(&self, front: &Subject, engines: &BTreeSet<Subject>) -> Front {
        let selected = self.selected.get(front).cloned().unwrap_or_default();
        let ready: Vec<Subject> = selected
            .iter()
            .filter(|pod| self.objects.pod(pod).is_some_and(|(object, pod)| pod_ready(object, pod) == Ok(true)))
            .cloned()
            .collect();
        let usable: Known<Vec<Subject>> = match (self.objects.pool(front), self.objects.service(front)) {
            (Some((_, pool)), _) => Ok(ready
                .iter()
                .filter(|pod| self.objects.pod(pod).is_some_and(|(_, pod)| port_problem(pool, pod).is_none()))
                .cloned()
                .collect()),
            (None, Some(_)) if self.slices.contains_key(front) => {
                Ok(selected.iter().filter(|pod| self.in_slices(front, pod).is_some_and(|(ready, _)| ready)).cloned().collect())
            }
            _ => unknown(format!("no EndpointSlice of {front} was read")),
        };
        let why = self.routers.get(front).and_then(RouterReading::shape).into_iter().collect();
        Front { serves_engines: selected.iter().any(|pod| engines.contains(pod)), selected, ready, usable, why }
    }

    /// All fronts.
    pub fn fronts(&self) -> impl Iterator<Item = &Subject> {
        self.selected.keys()
    }

    fn in_slices(&self, service: &Subject, pod: &Subject) -> Option<(bool, &Subject)> {
        let endpoints = self.slices.get(service)?;
        let uid = self.objects.get(pod).map(|object| object.meta.uid.as_str()).unwrap_or_default();
        endpoints
            .range((pod.name().to_owned(), String::new())..)
            .take_while(|((name, _), _)| name == pod.name())
            .find(|((_, seen), _)| seen.is_empty() || uid.is_empty() || seen == uid)
            .map(|(_, (ready, slice))| (*ready, slice))
    }

    /// Whether a pod is in the set from which its router or proxy picks.
    pub fn listing(&self, object: &Object, pod: &Pod) -> Listing {
        let subject = object.subject();
        let selecting = self.selecting.get(&subject).cloned().unwrap_or_default();
        let ready = pod_ready(object, pod);
        let (pools, services): (Vec<Subject>, Vec<Subject>) = selecting.iter().cloned().partition(|front| front.kind() == "inferencepool");
        if !pools.is_empty() {
            return self.by_pools(&subject, pod, &ready, pools);
        }
        // With another Service beside it a headless one is only how members of a group find each other.
        let with_address: Vec<Subject> =
            services.iter().filter(|front| !self.service(front).is_some_and(|service| service.headless)).cloned().collect();
        let services = if with_address.is_empty() { services } else { with_address };
        let intended_pool = self.intended.get(&subject).is_some_and(|fronts| fronts.iter().any(|front| front.kind() == "inferencepool"));
        if !services.is_empty() && !intended_pool {
            return self.by_services(&subject, pod, services);
        }
        let intended = self.intended.get(&subject).cloned().unwrap_or_default();
        if !intended.is_empty() {
            return self.not_selected(object, intended);
        }
        Listing {
            listed: unknown("no Service or InferencePool is seen that selects this pod"),
            routed: unknown("no router is known"),
            fronts: Vec::new(),
            evidence: Vec::new(),
            why: "no Service or InferencePool is seen that selects this pod".into(),
        }
    }

    fn service(&self, front: &Subject) -> Option<&Service> {
        self.objects.service(front).map(|(_, service)| service)
    }

    fn by_pools(&self, subject: &Subject, pod: &Pod, ready: &Known<bool>, pools: Vec<Subject>) -> Listing {
        let mut evidence = Vec::new();
        let mut why = Vec::new();
        let mut listed: Known<bool> = ready.clone();
        if ready == &Ok(false) {
            why.push("a router leaves out pods that are not Ready".to_owned());
        }
        let mut usable_pools = Vec::new();
        for front in &pools {
            let Some((_, pool)) = self.objects.pool(front) else { continue };
            match port_problem(pool, pod) {
                None => {
                    let selector = pool.selector.as_ref().map(ToString::to_string).unwrap_or_default();
                    evidence.push(Evidence::field(front, "spec.selector", selector));
                    usable_pools.push((front, pool));
                }
                Some((wanted, has)) => {
                    why.push(format!("{front} sends to port {wanted}, the pod serves {has}"));
                    evidence.push(Evidence::field(front, "spec.targetPorts", wanted));
                    evidence.push(Evidence::field(subject, "spec.containers[].ports", has));
                }
            }
        }
        if usable_pools.is_empty() {
            listed = Ok(false);
        }
        let routed = if listed != Ok(true) { listed.clone() } else { self.routed(subject, &usable_pools, &mut evidence, &mut why) };
        Listing { listed, routed, fronts: pools, evidence, why: why.join("; ") }
    }

    /// Whether any router of these pools counts the pod.
    fn routed(
        &self,
        subject: &Subject,
        pools: &[(&Subject, &InferencePool)],
        evidence: &mut Vec<Evidence>,
        why: &mut Vec<String>,
    ) -> Known<bool> {
        let mut verdict: Option<Known<bool>> = None;
        for (front, pool) in pools {
            if let Some(refusal) = self.refused(front, pool) {
                why.push(format!("{front}: {}", refusal.value));
                evidence.push(refusal);
                verdict.get_or_insert(Ok(false));
                continue;
            }
            if let Some((words, proof)) = self.unanswered(front, pool) {
                why.push(words);
                evidence.push(proof);
                verdict.get_or_insert(Ok(false));
                continue;
            }
            match self.routers.get(*front) {
                Some(reading) => {
                    let counted = reading.counts(subject);
                    match &counted {
                        Ok(true) => evidence.push(reading.evidence(subject)),
                        Ok(false) => why.push(format!("the router of {front} does not count it")),
                        Err(reason) => why.push(reason.to_string()),
                    }
                    if counted == Ok(true) {
                        return counted;
                    }
                    verdict = Some(counted);
                }
                None => {
                    verdict = Some(unknown(format!("the router of {front} was not asked")));
                }
            }
        }
        verdict.unwrap_or_else(|| unknown("no router is known"))
    }

    /// What shows that no gateway sends to this pool, where something does: its own status, or that of every route to it.
    fn refused(&self, front: &Subject, pool: &InferencePool) -> Option<Evidence> {
        let routes = routes_to(self.objects, front);
        let stopped = routes.iter().map(|(route, body)| super::proxy::stopped(route, body)).collect::<Option<Vec<_>>>();
        if let Some(proof) = stopped.and_then(|proofs| proofs.into_iter().next()) {
            return Some(proof);
        }
        if pool.has_status && pool.parents.is_empty() {
            return Some(Evidence::field(front, "status.parents", "no gateway has taken up the pool"));
        }
        let accepted =
            pool.parents.iter().any(|parent| meta::condition(&parent.conditions, "Accepted").is_none_or(|accepted| !accepted.is_false()));
        if !pool.parents.is_empty() && !accepted {
            let condition = pool.parents.iter().find_map(|parent| meta::condition(&parent.conditions, "Accepted"))?;
            return Some(Evidence::new(front, Place::Condition("Accepted".into()), condition.shown(), condition.since));
        }
        None
    }

    /// Why no request gets past the pool's router, where none is there to answer: what the proxy was seen to do counts before what the
    /// failure mode promises.
    fn unanswered(&self, front: &Subject, pool: &InferencePool) -> Option<(String, Evidence)> {
        let picker = self.pickers.get(front)?;
        let proof = picker.absent.as_ref()?.first()?.clone();
        match meets(self.objects, self.answers, front, picker) {
            Passing::Passes(_) => None,
            Passing::Fails(answer) => Some((
                format!("no router of {front} answers, and the proxy was seen to answer {}", answer.outcome_word()),
                answer.evidence(),
            )),
            Passing::Unseen if pool.failure_mode == "FailOpen" => None,
            Passing::Unseen => Some((format!("no router of {front} answers, and its failure mode is {}", pool.failure_mode), proof)),
        }
    }

    fn by_services(&self, subject: &Subject, pod: &Pod, services: Vec<Subject>) -> Listing {
        let mut evidence = Vec::new();
        // Of the Services that list it as ready: how many lead to a port that it does not open, and how many there are.
        let (mut astray, mut listing) = (0_usize, 0_usize);
        let mut verdict: Option<Known<bool>> = None;
        let mut why = Vec::new();
        for front in &services {
            if !self.slices.contains_key(front) {
                verdict.get_or_insert_with(|| unknown(format!("no EndpointSlice of {front} was read")));
                continue;
            }
            match self.in_slices(front, subject) {
                Some((ready, slice)) => {
                    evidence.push(Evidence::field(slice, &format!("endpoints[{}].conditions.ready", subject.name()), ready.to_string()));
                    if ready {
                        verdict = Some(Ok(true));
                        listing += 1;
                        if let Some((wanted, has)) = self.service(front).and_then(|service| target_problem(service, pod)) {
                            astray += 1;
                            why.push(format!("{front} sends to port {wanted}, the pod opens {has}"));
                            evidence.push(Evidence::field(front, "spec.ports[].targetPort", wanted));
                            evidence.push(Evidence::field(subject, "spec.containers[].ports", has));
                        }
                    } else {
                        why.push(format!("{slice} lists it as not ready"));
                        if verdict != Some(Ok(true)) {
                            verdict = Some(Ok(false));
                        }
                    }
                }
                None => {
                    why.push(format!("no EndpointSlice of {front} has it"));
                    if verdict != Some(Ok(true)) {
                        verdict = Some(Ok(false));
                    }
                }
            }
        }
        Listing {
            listed: verdict.unwrap_or_else(|| unknown("no EndpointSlice was read")),
            routed: match listing > 0 && astray == listing {
                true => Ok(false),
                false => unknown("a plain Service has no router"),
            },
            fronts: services,
            evidence,
            why: why.join("; "),
        }
    }

    fn not_selected(&self, object: &Object, intended: Vec<Subject>) -> Listing {
        let mut evidence = Vec::new();
        let mut why = Vec::new();
        for front in &intended {
            let pool = self.objects.pool(front).and_then(|(_, pool)| pool.selector.as_ref());
            let service = self.objects.service(front).and_then(|(_, service)| service.selector.as_ref());
            let Some(selector) = pool.or(service) else { continue };
            let missing = selector.missing(&object.meta.labels);
            why.push(format!("{front} does not select it: its selector asks for {}", missing.join(", ")));
            evidence.push(Evidence::field(front, "spec.selector", selector.to_string()));
        }
        let labels: Vec<String> = object.meta.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        evidence.push(Evidence::field(&object.subject(), "metadata.labels", labels.join(",")));
        Listing { listed: Ok(false), routed: Ok(false), fronts: Vec::new(), evidence, why: why.join("; ") }
    }
}

/// Fronts that select no pod at all and look as if they were meant for this one: they bear the name of its model or workload, or ask
/// for a label pair that it has.
fn meant_for(objects: &Catalogue, empty: &BTreeSet<&Subject>, claim: &Claim, pod: &Subject) -> Vec<Subject> {
    let Some(object) = objects.get(pod) else { return Vec::new() };
    let names: BTreeSet<&str> = std::iter::once(claim.id.name.as_str())
        .chain(claim.roles.iter().flat_map(|role| role.workloads.iter().map(Subject::name)))
        .collect();
    empty
        .iter()
        .filter(|front| front.namespace() == object.meta.namespace)
        .filter(|front| {
            let pool = objects.pool(front).and_then(|(_, pool)| pool.selector.as_ref());
            let service = objects.service(front).and_then(|(_, service)| service.selector.as_ref());
            let Some(selector) = pool.or(service) else { return false };
            names.contains(front.name()) || selector.labels.iter().any(|(key, value)| object.meta.labels.get(key) == Some(value))
        })
        .map(|front| (*front).clone())
        .collect()
}

/// The ports that a pool asks for and those that the pod opens, where they have none in common. A pod that declares none may open
/// any: that is no problem that can be proven.
pub fn port_problem(pool: &InferencePool, pod: &Pod) -> Option<(String, String)> {
    let served = served_ports(pod);
    if pool.target_ports.is_empty() || served.is_empty() || pool.target_ports.iter().any(|port| served.contains(port)) {
        return None;
    }
    let text = |ports: &mut dyn Iterator<Item = u16>| ports.map(|port| port.to_string()).collect::<Vec<_>>().join(", ");
    Some((text(&mut pool.target_ports.iter().copied()), text(&mut served.iter().copied())))
}

/// The target ports of a Service and the ports that the pod opens, where none of the targets is open. Nothing is proven of a headless
/// Service (its clients choose the port), or where a container with GPUs declares no port and is told none: it may open any.
pub fn target_problem(service: &Service, pod: &Pod) -> Option<(String, String)> {
    let served = served_ports(pod);
    let silent = |container: &Container| container.gpus() > 0 && container.ports.is_empty() && container.flag("--port").is_none();
    if service.headless || service.ports.is_empty() || served.is_empty() || pod.spec.containers.iter().any(silent) {
        return None;
    }
    let fits = |port: &ServicePort| match port.target.parse::<u16>() {
        Ok(number) => served.contains(&number),
        Err(_) => pod.spec.ports().any(|declared| declared.name == port.target),
    };
    if service.ports.iter().any(fits) {
        return None;
    }
    let targets: Vec<&str> = service.ports.iter().map(|port| port.target.as_str()).collect();
    let open: Vec<String> = served.iter().map(u16::to_string).collect();
    Some((targets.join(", "), open.join(", ")))
}

/// Ports that a pod's containers declare or are told to listen on (`--port`).
pub fn served_ports(pod: &Pod) -> BTreeSet<u16> {
    let declared = pod.spec.ports().map(|port| port.port);
    let told = pod.spec.containers.iter().filter_map(|container| container.flag("--port")?.parse().ok());
    declared.chain(told).collect()
}

/// A reason for an unknown listing of something that is no pod.
pub fn not_a_pod() -> Listing {
    Listing {
        listed: Err(Unknown::because("not a pod")),
        routed: Err(Unknown::because("not a pod")),
        fronts: Vec::new(),
        evidence: Vec::new(),
        why: String::new(),
    }
}
