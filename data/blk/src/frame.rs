//! Messages with descriptors between two servers, over a Unix socket: the lengths of both, then the descriptors, some with each of a few
//! bytes as the kernel bounds how many go together (`SCM_MAX_FD`, 253), then the text.

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// Descriptors that go together.
const TOGETHER: usize = 64;
/// More is no message of ours.
const TEXT_BYTES_MAX: u32 = 64 << 20;
const DESCRIPTORS_MAX: u32 = 4096;

/// Sends one.
pub fn send(mut stream: &UnixStream, text: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let too_long = |_| io::Error::from(io::ErrorKind::InvalidInput);
    let lengths = [text.len(), descriptors.len()].map(u32::try_from);
    let [text_length, count] = lengths;
    stream.write_all(&text_length.map_err(too_long)?.to_le_bytes())?;
    stream.write_all(&count.map_err(too_long)?.to_le_bytes())?;
    for some in descriptors.chunks(TOGETHER) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(TOGETHER))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(some));
        sendmsg(stream, &[IoSlice::new(&[0])], &mut ancillary, SendFlags::NOSIGNAL)?;
    }
    stream.write_all(text)
}

/// Receives one.
pub fn receive(mut stream: &UnixStream) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let mut lengths = [[0; 4]; 2];
    for length in &mut lengths {
        stream.read_exact(length)?;
    }
    let [length, count] = lengths.map(u32::from_le_bytes);
    if length > TEXT_BYTES_MAX || count > DESCRIPTORS_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut descriptors = Vec::new();
    for _ in 0..(count as usize).div_ceil(TOGETHER) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(TOGETHER))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let got = recvmsg(stream, &mut [IoSliceMut::new(&mut [0])], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(some) = message {
                descriptors.extend(some);
            }
        }
        if got.bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    if descriptors.len() != count as usize {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut text = vec![0; length as usize];
    stream.read_exact(&mut text)?;
    Ok((text, descriptors))
}

#[cfg(test)]
mod tests {
    use super::{receive, send};
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_message_comes_with_all_of_its_descriptors() {
        let (one, other) = UnixStream::pair().unwrap();
        let file = tempfile::tempfile().unwrap();
        let thread = std::thread::spawn(move || [receive(&other), receive(&other), receive(&other)]);
        send(&one, b"many", &vec![file.as_fd(); 150]).unwrap();
        send(&one, b"", &[]).unwrap();
        (&one).write_all(&[255; 8]).unwrap();
        let [many, none, nonsense] = thread.join().unwrap();
        let (text, files) = many.unwrap();
        assert_eq!((&text[..], files.len()), (&b"many"[..], 150));
        assert_eq!(none.unwrap().1.len(), 0);
        assert!(nonsense.is_err());
    }
}
