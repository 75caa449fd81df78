//! Port-forward over WebSocket, in the channel protocol: for the nth port channel 2n carries data and 2n+1 an error, and the first
//! frame of each tells the port.
//!
//! Owns the framing. What stands behind a port is the backend's.

use std::sync::Arc;

use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use http::{HeaderMap, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::super::answer::Body;
use super::super::http::Query;
use super::super::status::{ApiError, ApiResult};
use super::backends::{Backend, Wire};

/// The protocols that are spoken, best first.
const PROTOCOLS: [&str; 2] = ["v5.channel.k8s.io", "v4.channel.k8s.io"];
/// The most ports of one connection.
const MOST_PORTS: usize = 64;
/// How much is read from a port at once.
const CHUNK: usize = 16 * 1024;

fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default()
}

/// Answers the upgrade and forwards in the background.
///
/// # Errors
/// 400 for what is no upgrade to a protocol that is spoken, or names no port.
pub fn begin(
    upgrade: Option<OnUpgrade>,
    headers: &HeaderMap,
    query: &Query,
    pod: Arc<Value>,
    backend: Arc<dyn Backend>,
) -> ApiResult<Response<Body>> {
    let wanted = header(headers, "sec-websocket-protocol");
    let offered: Vec<&str> = wanted.split(',').map(str::trim).collect();
    let protocol = PROTOCOLS.iter().find(|p| offered.contains(*p));
    let key = header(headers, "sec-websocket-key");
    let (Some(upgrade), Some(protocol), false) = (upgrade, protocol, key.is_empty()) else {
        return Err(ApiError::bad_request(format!("unable to upgrade: only WebSocket with {} is served", PROTOCOLS.join(" or "))));
    };
    let ports: Vec<u16> = query
        .all("ports")
        .flat_map(|list| list.split(','))
        .map(|port| port.parse().map_err(|_| ApiError::bad_request(format!("unable to parse {port:?} as a port"))))
        .collect::<ApiResult<_>>()?;
    if ports.is_empty() || ports.len() > MOST_PORTS {
        return Err(ApiError::bad_request(r#"query parameter "port" is required"#));
    }
    tokio::spawn(async move {
        if let Ok(upgraded) = upgrade.await {
            let socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, None).await;
            forward(socket, ports, pod, backend).await;
        }
    });
    let mut response = Response::new(Empty::new().boxed_unsync());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let accept = derive_accept_key(key.as_bytes());
    for (name, value) in [
        ("upgrade", "websocket"),
        ("connection", "Upgrade"),
        ("sec-websocket-accept", accept.as_str()),
        ("sec-websocket-protocol", protocol),
    ] {
        if let Ok(value) = http::HeaderValue::from_str(value) {
            response.headers_mut().insert(name, value);
        }
    }
    Ok(response)
}

fn frame(channel: usize, data: &[u8]) -> Message {
    let mut bytes = Vec::with_capacity(data.len() + 1);
    bytes.push(u8::try_from(channel).unwrap_or(u8::MAX));
    bytes.extend_from_slice(data);
    Message::binary(bytes)
}

async fn forward<S>(mut socket: WebSocketStream<S>, ports: Vec<u16>, pod: Arc<Value>, backend: Arc<dyn Backend>)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send,
{
    let (told, mut from_pod) = mpsc::channel::<Message>(16);
    let mut readers = JoinSet::new();
    let mut writers: Vec<Option<tokio::io::WriteHalf<Box<dyn Wire>>>> = Vec::new();
    for (n, port) in ports.iter().enumerate() {
        for channel in [2 * n, 2 * n + 1] {
            if socket.send(frame(channel, &port.to_le_bytes())).await.is_err() {
                return;
            }
        }
        match backend.connect(pod.clone(), *port).await {
            Ok(wire) => {
                let (mut reader, writer) = tokio::io::split(wire);
                writers.push(Some(writer));
                let told = told.clone();
                readers.spawn(async move {
                    let mut buffer = vec![0u8; CHUNK];
                    while let Ok(read) = reader.read(&mut buffer).await {
                        if read == 0 || told.send(frame(2 * n, buffer.get(..read).unwrap_or_default())).await.is_err() {
                            break;
                        }
                    }
                });
            }
            Err(error) => {
                writers.push(None);
                if socket.send(frame(2 * n + 1, error.message.as_bytes())).await.is_err() {
                    return;
                }
            }
        }
    }
    drop(told);
    loop {
        tokio::select! {
            message = from_pod.recv() => match message {
                Some(message) => {
                    if socket.send(message).await.is_err() {
                        break;
                    }
                }
                // All ports have ended.
                None => break,
            },
            message = socket.next() => match message {
                Some(Ok(Message::Binary(bytes))) => write(&mut writers, &bytes).await,
                Some(Ok(Message::Close(_)) | Err(_)) | None => break,
                Some(Ok(_)) => {}
            },
        }
    }
    let _ = socket.close(None).await;
    readers.shutdown().await;
}

async fn write(writers: &mut [Option<tokio::io::WriteHalf<Box<dyn Wire>>>], bytes: &Bytes) {
    let Some((channel, data)) = bytes.split_first() else { return };
    // 255 closes the half of a channel (v5).
    let (channel, closes) = if *channel == 255 { (data.first().copied().unwrap_or(1), true) } else { (*channel, false) };
    if !channel.is_multiple_of(2) {
        return;
    }
    let Some(place) = writers.get_mut(usize::from(channel / 2)) else { return };
    let Some(writer) = place else { return };
    let ended = match closes {
        true => {
            let _ = writer.shutdown().await;
            true
        }
        false => writer.write_all(data).await.is_err(),
    };
    if ended {
        *place = None;
    }
}
