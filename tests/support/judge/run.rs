//! Runs the program for one case, shut off from the user's own files, and gives what it printed.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::show;

/// How long one run may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);
/// More output than this is cut, which makes it no document.
const MOST_BYTES: u64 = 64 << 20;

/// `program explain --from DIR --now NOW -o json`, with `home` in place of the user's folders.
pub(crate) fn explain(mut program: Command, dir: &Path, now: &str, home: &Path) -> Result<String, String> {
    program.arg("explain").arg("--from").arg(dir).args(["--now", now, "-o", "json"]).env_remove("KUBECONFIG");
    for (variable, folder) in
        [("HOME", ""), ("XDG_STATE_HOME", "state"), ("XDG_CONFIG_HOME", "config"), ("XDG_CACHE_HOME", "cache"), ("XDG_DATA_HOME", "data")]
    {
        program.env(variable, home.join(folder));
    }
    finish(program, LIMIT)
}

/// Runs a command to its end and gives its stdout. An exit status other than 0 may only say that there are findings;
/// a panic, a signal, a program that cannot run and one that is late have no output that counts.
pub(crate) fn finish(mut command: Command, limit: Duration) -> Result<String, String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("no document: cannot run: {error}"))?;
    let deadline = Instant::now() + limit;
    let stdout = collect(child.stdout.take());
    let stderr = collect(child.stderr.take());
    let late = || format!("no document: still running after {limit:?}");
    let Some(status) = wait_until(&mut child, deadline)? else {
        child.kill().and_then(|()| child.wait()).map_err(|error| format!("no document: cannot stop it: {error}"))?;
        return Err(late());
    };
    let left = || deadline.saturating_duration_since(Instant::now());
    let printed = stdout.recv_timeout(left()).map_err(|_| late())?;
    let told = stderr.recv_timeout(left()).map_err(|_| late())?;
    let told = String::from_utf8_lossy(&told);
    let last = told.trim().lines().last().map_or("nothing on stderr".into(), show);
    match status.code() {
        None => Err(format!("no document: {status} ({last})")),
        Some(code @ (101 | 126 | 127)) => Err(format!("no document: exit status {code} ({last})")),
        Some(_) => String::from_utf8(printed).map_err(|_| "invalid JSON: not UTF-8".into()),
    }
}

/// Reads a pipe to its end on a thread of its own, so that a full pipe never blocks the program.
fn collect(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (send, receive) = channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(pipe) = pipe {
            // what was read before an error still counts
            let _ = pipe.take(MOST_BYTES).read_to_end(&mut bytes);
        }
        let _ = send.send(bytes);
    });
    receive
}

fn wait_until(child: &mut Child, deadline: Instant) -> Result<Option<std::process::ExitStatus>, String> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(Some(status)),
            Ok(None) if Instant::now() >= deadline => return Ok(None),
            Ok(None) => thread::sleep(Duration::from_millis(2)),
            Err(error) => return Err(format!("no document: cannot wait for it: {error}")),
        }
    }
}
