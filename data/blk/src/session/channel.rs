//! The channel on which the server tells a front end that the configuration space has changed, as when a disk grew.
//!
//! The handler of the `vhost` crate (0.18) keeps the channel to itself and has no such message, so the one message that brings it is
//! taken from the connection before the handler sees it (vhost-user protocol, `VHOST_USER_SET_BACKEND_REQ_FD` and
//! `VHOST_USER_BACKEND_CONFIG_CHANGE_MSG`).

use rustix::io::ioctl_fionread;
use rustix::net::sockopt::{socket_domain, socket_type};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, SocketType, recv, recvmsg, send,
};
use std::io::{self, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

/// Request, flags and length of what follows, 32 bits each, in the byte order of the machine.
const HEADER_BYTES: usize = 12;
const SET_BACKEND_REQ_FD: u32 = 21;
const CONFIG_CHANGE: u32 = 2;
pub(super) const VERSION: u32 = 1;
const IS_REPLY: u32 = 1 << 2;
const NEEDS_REPLY: u32 = 1 << 3;
/// What follows the header is no longer (vhost-user protocol); the handler refuses what says that it is.
const PAYLOAD_BYTES_MAX: usize = 4096;

/// Whether a whole message is there, or the end of the connection, or what is none and to be refused by the handler.
pub(crate) fn has_message(connection: &UnixStream) -> io::Result<bool> {
    let mut bytes = [0; HEADER_BYTES + PAYLOAD_BYTES_MAX];
    let (_, peeked) = recv(connection, &mut bytes, RecvFlags::PEEK | RecvFlags::DONTWAIT)?;
    let Some(header) = bytes.first_chunk().filter(|_| peeked >= HEADER_BYTES) else { return Ok(peeked == 0) };
    let [_, _, length] = fields(header).map(|field| field as usize);
    if length > PAYLOAD_BYTES_MAX || peeked >= HEADER_BYTES + length {
        return Ok(true);
    }
    // A look ends behind what was sent with descriptors, and a front end may send a header with them and the rest by another call.
    Ok(ioctl_fionread(connection)? >= (HEADER_BYTES + length) as u64)
}

/// Waits for the next message. If it brings the channel, it is taken and answered, and the channel returned; any other stays for
/// the handler.
pub(crate) fn take(connection: &mut UnixStream) -> io::Result<Option<UnixStream>> {
    let mut header = [0; HEADER_BYTES];
    let (peeked, _) = recv(&*connection, &mut header, RecvFlags::PEEK)?;
    let [request, flags, length] = fields(&header);
    if peeked < HEADER_BYTES || request != SET_BACKEND_REQ_FD || length != 0 {
        return Ok(None);
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    recvmsg(&*connection, &mut [IoSliceMut::new(&mut header)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let descriptors = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let channel = descriptors.flatten().next().filter(is_stream).map(UnixStream::from);
    if flags & NEEDS_REPLY != 0 {
        let is_missing = u64::from(channel.is_none());
        let mut reply = message(SET_BACKEND_REQ_FD, VERSION | IS_REPLY, 8).to_vec();
        reply.extend(is_missing.to_ne_bytes());
        connection.write_all(&reply)?;
    }
    let why = "the channel on which it is told of changes is no Unix stream socket";
    channel.map(Some).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, why))
}

/// Whether it is a socket between two processes of this host. Of another file, what is done with it could wait for whoever answers for that.
fn is_stream(descriptor: &OwnedFd) -> bool {
    socket_domain(descriptor) == Ok(AddressFamily::UNIX) && socket_type(descriptor) == Ok(SocketType::STREAM)
}

/// Tells the front end to read the configuration space again. One that does not read its channel is not waited for.
pub(crate) fn tell_change(channel: &UnixStream) -> io::Result<()> {
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    send(channel, &message(CONFIG_CHANGE, VERSION, 0), flags)?;
    Ok(())
}

fn fields(header: &[u8; HEADER_BYTES]) -> [u32; 3] {
    let [a, b, c, d, e, f, g, h, i, j, k, l] = *header;
    [[a, b, c, d], [e, f, g, h], [i, j, k, l]].map(u32::from_ne_bytes)
}

pub(super) fn message(request: u32, flags: u32, length: u32) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    for (place, field) in header.chunks_exact_mut(4).zip([request, flags, length]) {
        place.copy_from_slice(&field.to_ne_bytes());
    }
    header
}
