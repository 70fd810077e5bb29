//! Frames of HTTP/2 in any order, well-formed or not: whatever follows the preface.

use super::script::Script;
use super::{LONG, Stage, play};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// An empty frame SETTINGS.
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
const HEADERS: u8 = 1;
const END_HEADERS: u8 = 4;
/// What the server says of itself when it is asked nothing, and for each byte that it hears.
const SAID_BYTES_MAX: usize = 64 << 10;
const SAID_A_BYTE_MAX: usize = 64;

/// One byte says who comes. Then one byte says which frame comes, and what follows belongs to it.
pub fn frames(input: &[u8]) {
    play(input, async |stage, mut script| {
        let (heard, said) = talk(stage, &mut script).await;
        assert!(said <= SAID_BYTES_MAX + heard * SAID_A_BYTE_MAX, "{said} bytes were said to {heard}");
    });
}

/// Says it all; and how much was said to the server, and how much it answered.
async fn talk(stage: &mut Stage, script: &mut Script<'_>) -> (usize, usize) {
    let mut pipe = stage.connect(script.byte());
    let mut heard = PREFACE.len() + SETTINGS.len();
    if pipe.write_all(&[PREFACE, SETTINGS].concat()).await.is_err() {
        return (heard, 0);
    }
    let mut said = 0;
    while let Some(kind) = script.next() {
        let bytes = match kind {
            0xff => {
                stage.manner = script.byte();
                stage.settle(Duration::from_secs(u64::from(script.byte() & 15))).await;
                continue;
            }
            0xfe => script.some().to_vec(),
            0xfd => request(script),
            kind => frame(kind, script.byte(), script.byte().into(), script.some()),
        };
        heard += bytes.len();
        if !say(stage, &mut pipe, &bytes, &mut said).await {
            break;
        }
    }
    stage.settle(LONG).await;
    drain(&mut pipe, &mut said).await;
    (heard, said)
}

/// Whether the server still listens. It waits for no one who does not read, so that is done between.
async fn say(stage: &mut Stage, pipe: &mut DuplexStream, bytes: &[u8], said: &mut usize) -> bool {
    for piece in bytes.chunks(1 << 10) {
        let written = tokio::time::timeout(Duration::from_secs(1), pipe.write_all(piece)).await;
        match written {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return false,
            // Its windows are full, or its own words wait.
            Err(_) => {
                stage.settle(Duration::ZERO).await;
                drain(pipe, said).await;
                return false;
            }
        }
    }
    drain(pipe, said).await;
    true
}

/// Reads what there is.
async fn drain(pipe: &mut DuplexStream, said: &mut usize) {
    let mut room = [0; 4096];
    while let Ok(Ok(count @ 1..)) = tokio::time::timeout(Duration::from_millis(1), pipe.read(&mut room)).await {
        *said += count;
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, length @ ..] = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&length, [kind, flags].as_slice(), &stream.to_be_bytes(), payload].concat()
}

/// The headers of a good request, so that frames after it have a stream to belong to.
fn request(script: &mut Script<'_>) -> Vec<u8> {
    let (method, flags, stream) = (super::calls::method(script.byte()), script.byte(), script.byte());
    let path = format!("/minerva.v1.Participation/{method}");
    let fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path.as_str()),
        (":authority", "minervad.invalid"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
        ("authorization", minerva_tenant_server::test_server::BEARER),
    ];
    let mut block = Vec::new();
    for (name, value) in fields {
        // A literal that is not indexed and not compressed; all of them are shorter than 127 bytes.
        block.push(0);
        for text in [name, value] {
            block.push(text.len() as u8);
            block.extend(text.as_bytes());
        }
    }
    frame(HEADERS, flags | END_HEADERS, stream.into(), &block)
}
