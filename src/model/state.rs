//! The words for states: what an engine says, what a replica is, what a workload or a view is.
//!
//! The words of replicas, workloads and views are those of the public document; no others are shown anywhere.

use std::fmt;

use serde::{Serialize, Serializer};

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$vdoc])* $variant),+ }

        impl $name {
            /// Every word, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word as documents and commands write it.
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// The word as the screen writes it: upper case.
            pub fn shout(self) -> String {
                self.word().to_ascii_uppercase()
            }

            /// The state of that word.
            pub fn parse(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.word())
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.word())
            }
        }
    };
}

words! {
    /// One word for a replica, from its stage and its engine's state together.
    ReplicaState {
        /// No node takes it yet.
        PendingGpu = "pending-gpu",
        /// Behind a scheduling gate or waiting for quota.
        WaitingAdmission = "waiting-admission",
        /// On a node; its image is being pulled.
        Pulling = "pulling",
        /// On a node; sandbox, volumes, init containers or the engine's process come up.
        Starting = "starting",
        /// The model is being fetched.
        Downloading = "downloading",
        /// The engine reads the weights.
        Loading = "loading",
        /// Weights in; compiling, capturing graphs, sizing the KV cache, first request.
        Warming = "warming",
        /// The engine serves; the pod is not Ready.
        EngineReady = "engine-ready",
        /// Pod Ready; whether it is listed is not known or not needed.
        Ready = "ready",
        /// Ready, and no router or Service will pick it.
        NotRouted = "not-routed",
        /// Ready, listed, awake.
        Serving = "serving",
        /// The engine takes no work until it is resumed.
        Paused = "paused",
        /// The engine gave its memory back; it answers nothing until it is woken.
        Sleeping = "sleeping",
        /// On its way back from sleep.
        Waking = "waking",
        /// Leaving, and something is known to finish its requests.
        Draining = "draining",
        /// Being deleted.
        Terminating = "terminating",
        /// The process lives; the engine does not move although it has work.
        Stalled = "stalled",
        /// The container ends again and again.
        Crashing = "crashing",
        /// The engine refuses, fails or is gone while its pod is still there.
        Dead = "dead",
        /// Nothing is known that would decide.
        Unknown = "unknown",
    }
}

words! {
    /// One word for a workload, a role or a model service.
    WorkloadState {
        /// All that is wanted serves.
        Serving = "serving",
        /// Some serve, fewer than wanted.
        Degraded = "degraded",
        /// None serves although some are wanted.
        Down = "down",
        /// None is wanted.
        ScaledToZero = "scaled-to-zero",
        /// A new revision is on its way and moves.
        RollingOut = "rolling-out",
        /// The rollout waits for a person.
        WaitingPromotion = "waiting-promotion",
        /// The update failed.
        FailedUpdate = "failed-update",
        /// The rollout can not go on by itself.
        Blocked = "blocked",
        /// Not known.
        Unknown = "unknown",
    }
}

words! {
    /// One word for a view: whether what it shows is current.
    ViewState {
        /// Current.
        Ok = "ok",
        /// Older than it should be.
        Stale = "stale",
        /// The user may not read it.
        NoPermission = "no-permission",
        /// The login has lapsed.
        LoginNeeded = "login-needed",
        /// The server does not answer.
        Unreachable = "unreachable",
    }
}

impl ReplicaState {
    /// Whether a request sent to the replica is answered now, as far as is known.
    pub fn serves(self) -> bool {
        matches!(self, Self::Serving | Self::Ready)
    }
}

/// What an engine says or shows about itself. Kubernetes' opinion is no part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineState {
    /// The process runs; no sign of loading yet.
    Starting,
    /// The model is being fetched; no weight is read yet.
    Downloading,
    /// Weights are being read.
    Loading,
    /// Weights in, not yet serving.
    Warming,
    /// It says that it serves, in a way that means it.
    Ready,
    /// Takes no work until resumed.
    Paused,
    /// Has work, and no token moves between two samples.
    Stalled,
    /// Finishes what it has, takes nothing new.
    Draining,
    /// Asleep; the level where it is known (vLLM: 1 weights in host memory, 2 weights dropped).
    Sleeping(Option<u8>),
    /// On its way back from sleep.
    Waking,
    /// It refuses, fails, or its loop is dead.
    Dead,
    /// Not known, and why.
    Unknown(super::Unknown),
}

impl fmt::Display for EngineState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Starting => f.write_str("STARTING"),
            Self::Downloading => f.write_str("DOWNLOADING"),
            Self::Loading => f.write_str("LOADING"),
            Self::Warming => f.write_str("WARMING"),
            Self::Ready => f.write_str("READY"),
            Self::Paused => f.write_str("PAUSED"),
            Self::Stalled => f.write_str("STALLED"),
            Self::Draining => f.write_str("DRAINING"),
            Self::Sleeping(Some(level)) => write!(f, "SLEEPING({level})"),
            Self::Sleeping(None) => f.write_str("SLEEPING"),
            Self::Waking => f.write_str("WAKING"),
            Self::Dead => f.write_str("DEAD"),
            Self::Unknown(why) => write!(f, "UNKNOWN ({why})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_reads_back() {
        for state in ReplicaState::ALL {
            assert_eq!(ReplicaState::parse(state.word()), Some(*state));
        }
        assert_eq!(ReplicaState::PendingGpu.shout(), "PENDING-GPU");
        assert_eq!(WorkloadState::parse("hung"), None);
        assert_eq!(EngineState::Sleeping(Some(1)).to_string(), "SLEEPING(1)");
    }
}
