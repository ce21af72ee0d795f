//! A network that fails: a proxy before a server, whose connections are refused, cut in the middle, or slow, as a test asks.
//!
//! It passes bytes and knows nothing of what they mean, so any protocol over TCP goes through it.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// What happens to connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// They are closed at once.
    Refuse,
    /// Each is cut after so many bytes of answers.
    CutAnswers(u64),
    /// Each is cut after so many bytes of requests.
    CutRequests(u64),
    /// Each part of an answer comes later by this.
    Slow(Duration),
    /// Answers are held back for as long as this is the fault; connections stay open.
    Silent,
}

/// A proxy before one server; it ends with the value.
#[derive(Debug)]
pub struct Flaky {
    endpoint: String,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    upstream: String,
    /// The fault, and every how manieth connection has it.
    fault: Mutex<(Fault, u64)>,
    connections: AtomicU64,
    hits: AtomicU64,
    is_over: AtomicBool,
}

impl Flaky {
    /// Starts a proxy before `upstream`, `host:port`, without any fault.
    pub fn before(upstream: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let endpoint = listener.local_addr().expect("a bound listener has an address").to_string();
        let shared = Arc::new(Shared {
            upstream: upstream.to_owned(),
            fault: Mutex::new((Fault::None, 1)),
            connections: AtomicU64::new(0),
            hits: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || accept(&listener, &accepting));
        Self { endpoint, shared }
    }

    /// Returns where it listens, `host:port`.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Gives every `every`th connection from now on, and what open ones do from now on, the fault `fault`.
    pub fn set(&self, fault: Fault, every: u64) {
        *self.shared.fault.lock().unwrap_or_else(PoisonError::into_inner) = (fault, every.max(1));
    }

    /// Returns how many connections a fault has hit.
    pub fn hits(&self) -> u64 {
        self.shared.hits.load(Ordering::Relaxed)
    }
}

impl Drop for Flaky {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(&self.endpoint);
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for connection in listener.incoming() {
        if shared.is_over.load(Ordering::Relaxed) {
            return;
        }
        let Ok(client) = connection else { continue };
        let shared = Arc::clone(shared);
        thread::spawn(move || serve(client, &shared));
    }
}

fn serve(client: TcpStream, shared: &Arc<Shared>) {
    let number = shared.connections.fetch_add(1, Ordering::Relaxed);
    if let Fault::Refuse = shared.fault_of(number) {
        shared.hits.fetch_add(1, Ordering::Relaxed);
        return;
    }
    let Ok(server) = TcpStream::connect(&shared.upstream) else { return };
    let (Ok(from_client), Ok(to_server)) = (client.try_clone(), server.try_clone()) else { return };
    let requests = Arc::clone(shared);
    thread::spawn(move || pass(from_client, to_server, &requests, number, false));
    pass(server, client, shared, number, true);
}

/// Passes bytes in one direction until either side ends, or the fault cuts the connection.
fn pass(mut from: TcpStream, mut to: TcpStream, shared: &Shared, number: u64, is_answer: bool) {
    let mut buffer = [0; 16_384];
    let mut passed = 0;
    while let Ok(read) = from.read(&mut buffer) {
        if read == 0 {
            break;
        }
        let mut part = &buffer[..read];
        let most = match shared.fault_of(number) {
            Fault::CutAnswers(most) if is_answer => Some(most),
            Fault::CutRequests(most) if !is_answer => Some(most),
            Fault::Slow(time) if is_answer => {
                shared.hits.fetch_add(1, Ordering::Relaxed);
                thread::park_timeout(time);
                None
            }
            Fault::Silent if is_answer => {
                shared.hits.fetch_add(1, Ordering::Relaxed);
                while shared.fault_of(number) == Fault::Silent && !shared.is_over.load(Ordering::Relaxed) {
                    thread::park_timeout(Duration::from_millis(10));
                }
                None
            }
            Fault::Refuse => Some(passed),
            _ => None,
        };
        let is_cut = most.is_some_and(|most| most <= passed + part.len() as u64);
        if let Some(most) = most.filter(|_| is_cut) {
            part = &part[..usize::try_from(most.saturating_sub(passed)).unwrap_or(0).min(part.len())];
        }
        if to.write_all(part).is_err() {
            break;
        }
        passed += part.len() as u64;
        if is_cut {
            shared.hits.fetch_add(1, Ordering::Relaxed);
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

impl Shared {
    fn fault_of(&self, connection: u64) -> Fault {
        let (fault, every) = *self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        if connection.is_multiple_of(every) { fault } else { Fault::None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that answers every byte with a hundred.
    fn server() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = listener.local_addr().unwrap().to_string();
        thread::spawn(move || {
            for connection in listener.incoming() {
                let mut connection = connection.unwrap();
                thread::spawn(move || {
                    let mut byte = [0];
                    while connection.read(&mut byte).is_ok_and(|read| read == 1) {
                        let _ = connection.write_all(&[byte[0]; 100]);
                    }
                });
            }
        });
        endpoint
    }

    /// How many bytes of an answer of a hundred arrive.
    fn ask(endpoint: &str) -> usize {
        let mut connection = TcpStream::connect(endpoint).unwrap();
        if connection.write_all(b"x").is_err() {
            return 0;
        }
        let mut answer = [0; 100];
        let mut read = 0;
        while read < 100 {
            match connection.read(&mut answer[read..]) {
                Ok(0) | Err(_) => break,
                Ok(more) => read += more,
            }
        }
        read
    }

    #[test]
    fn connections_are_refused_cut_or_left_alone() {
        let flaky = Flaky::before(&server());
        assert_eq!(ask(flaky.endpoint()), 100);
        flaky.set(Fault::CutAnswers(30), 1);
        assert_eq!(ask(flaky.endpoint()), 30);
        flaky.set(Fault::CutRequests(0), 1);
        assert_eq!(ask(flaky.endpoint()), 0);
        flaky.set(Fault::Refuse, 2);
        let told = [ask(flaky.endpoint()), ask(flaky.endpoint())];
        assert!(told == [0, 100] || told == [100, 0], "{told:?}");
        flaky.set(Fault::Slow(Duration::from_millis(1)), 1);
        assert_eq!(ask(flaky.endpoint()), 100);
        assert!(4 <= flaky.hits());
        flaky.set(Fault::Silent, 1);
        let (endpoint, hits) = (flaky.endpoint().to_owned(), flaky.hits());
        let asking = thread::spawn(move || ask(&endpoint));
        while flaky.hits() == hits {
            thread::park_timeout(Duration::from_millis(1));
        }
        assert!(!asking.is_finished());
        flaky.set(Fault::None, 1);
        assert_eq!(asking.join().unwrap(), 100);
    }
}
