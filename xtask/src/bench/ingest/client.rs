//! A small HTTP client: connections that stay open, one request after the other on each.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use super::event;

/// One connection.
pub struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    pub fn open(address: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Sends one event and returns the status of the answer.
    pub fn send(&mut self, body: &str) -> anyhow::Result<u16> {
        let head = format!(
            "POST / HTTP/1.1\r\nHost: bench\r\nContent-Type: application/cloudevents+json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        self.stream.get_mut().write_all(format!("{head}{body}").as_bytes())?;
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let status = line.split(' ').nth(1).context("an answer begins with its status")?.parse()?;
        let mut length = 0;
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            let header = line.trim_end();
            if header.is_empty() {
                break;
            }
            if let Some((name, value)) = header.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse()?;
            }
        }
        let mut answer = vec![0; length];
        self.stream.read_exact(&mut answer)?;
        Ok(status)
    }
}

/// Sends for `span` over `connections` at once and returns how many events were answered a second.
pub fn answered_a_second(address: &str, connections: usize, span: Duration) -> anyhow::Result<f64> {
    let next = AtomicU64::new(1);
    let started = Instant::now();
    let counts: Vec<anyhow::Result<u64>> = thread::scope(|scope| {
        let threads: Vec<_> =
            (0..connections).map(|_| scope.spawn(|| send_for(address, &next, started, span))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| bail!("a connection panicked"))).collect()
    });
    let elapsed = started.elapsed();
    let answered: u64 = counts.into_iter().sum::<anyhow::Result<u64>>()?;
    Ok(answered as f64 / elapsed.as_secs_f64())
}

fn send_for(address: &str, next: &AtomicU64, started: Instant, span: Duration) -> anyhow::Result<u64> {
    let mut connection = Connection::open(address)?;
    let mut answered = 0;
    while started.elapsed() < span {
        let number = usize::try_from(next.fetch_add(1, Ordering::Relaxed))?;
        match connection.send(&event(number))? {
            202 => answered += 1,
            other => bail!("an event was answered with {other}"),
        }
    }
    Ok(answered)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn requests_follow_each_other_on_one_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut stream = BufReader::new(stream);
            for body in ["one", "second"] {
                let mut line = String::new();
                while line != "\r\n" {
                    line.clear();
                    stream.read_line(&mut line).unwrap();
                }
                let mut found = vec![0; body.len()];
                stream.read_exact(&mut found).unwrap();
                assert_eq!(found, body.as_bytes());
                stream.get_mut().write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 2\r\n\r\n{}").unwrap();
            }
        });
        let mut connection = Connection::open(&address).unwrap();
        assert_eq!(connection.send("one").unwrap(), 202);
        assert_eq!(connection.send("second").unwrap(), 202);
        server.join().unwrap();
    }
}
