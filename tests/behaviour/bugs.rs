//! Bugs that are seeded into the embedded API, to see that the suite finds them.

use std::convert::Infallible;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Request, Response};
use kube::client::Body;
use modeldeck::simulator::api::answer::Body as Answered;
use modeldeck::simulator::api::cluster::Cluster;
use tower::Service;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bug {
    /// A dry run is stored.
    DryRunStores,
    /// Everybody may do everything.
    NobodyIsRefused,
    /// Selectors of watches and lists are ignored.
    SelectsEverything,
    /// Forced applies are all there are: no conflict is told.
    NoConflicts,
    /// Patches are merge patches, whatever their type says.
    OneKindOfPatch,
}

pub(crate) const ALL: [Bug; 5] = [Bug::DryRunStores, Bug::NobodyIsRefused, Bug::SelectsEverything, Bug::NoConflicts, Bug::OneKindOfPatch];

/// The embedded API with one bug, or none.
#[derive(Clone)]
pub(crate) struct Buggy {
    pub(crate) cluster: Cluster,
    pub(crate) bug: Option<Bug>,
}

fn replace_in_query(request: &mut Request<Body>, from: &str, to: &str) {
    let uri = request.uri().to_string().replace(from, to);
    *request.uri_mut() = uri.parse().unwrap();
}

impl Service<Request<Body>> for Buggy {
    type Response = Response<Answered>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Answered>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        match self.bug {
            Some(Bug::DryRunStores) => replace_in_query(&mut request, "dryRun=All", "x=y"),
            Some(Bug::SelectsEverything) => {
                replace_in_query(&mut request, "labelSelector=", "x=");
                replace_in_query(&mut request, "fieldSelector=", "x=");
            }
            Some(Bug::NoConflicts) if request.uri().query().unwrap_or_default().contains("fieldManager=") => {
                replace_in_query(&mut request, "force=false", "x=y");
                replace_in_query(&mut request, "fieldManager=", "force=true&fieldManager=");
            }
            Some(Bug::NobodyIsRefused) => {
                request.headers_mut().insert("authorization", "Bearer admin-token".parse().unwrap());
            }
            Some(Bug::OneKindOfPatch) if request.method() == "PATCH" => {
                let given = request.headers().get("content-type").map(|v| v.to_str().unwrap().to_owned()).unwrap_or_default();
                if given.contains("strategic") {
                    request.headers_mut().insert("content-type", "application/merge-patch+json".parse().unwrap());
                }
            }
            _ => {}
        }
        let cluster = self.cluster.clone();
        Box::pin(async move { Ok(cluster.answer(request).await) })
    }
}
