//! Random calls against a sequential model.

use std::thread;

use kovar_core::backend::{Backend, Buffer, Program, ReadTicket};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng};
use std::sync::Arc;

use super::{device, read, settle, word_copy};

/// Buffers with their expected bytes, and programs on parts of them.
struct Model {
    buffers: Vec<(Buffer, Vec<u8>)>,
    programs: Vec<Copying>,
    /// Reads on their way and what they must bring.
    tickets: Vec<(Box<dyn ReadTicket>, Vec<u8>)>,
}

/// A program that copies bytes of one buffer to another or to its own.
struct Copying {
    program: Arc<dyn Program>,
    from: (usize, usize),
    to: (usize, usize),
    len: usize,
}

const SIZES: [usize; 4] = [4 << 10, 9001, 1026, 3];

impl Model {
    fn new(backend: &dyn Backend, rng: &mut StdRng) -> Self {
        let buffers: Vec<_> = SIZES
            .iter()
            .map(|&len| (backend.alloc_zeroed(len).unwrap(), vec![0; len]))
            .collect();
        let programs = (0..4)
            .map(|i| {
                let (from, to) = ((i % 3, 0), ((i + i / 3) % 3, 512));
                let n = rng.random_range(1..=128);
                let place = |(at, offset): (usize, usize)| (&buffers[at].0, offset);
                Copying {
                    program: word_copy(backend, place(from), place(to), n),
                    from,
                    to,
                    len: n * 4,
                }
            })
            .collect();
        Self {
            buffers,
            programs,
            tickets: Vec::new(),
        }
    }

    fn range(rng: &mut StdRng, len: usize) -> (usize, usize) {
        let offset = rng.random_range(0..=len);
        let most = len - offset;
        let len = match rng.random_range(0..3) {
            0 => most,
            1 => most.min(rng.random_range(0..9)),
            _ => rng.random_range(0..=most),
        };
        (offset, len)
    }

    fn step(&mut self, backend: &dyn Backend, rng: &mut StdRng) {
        let queue = backend.queue();
        let at = rng.random_range(0..self.buffers.len());
        let (offset, len) = Self::range(rng, SIZES[at]);
        match rng.random_range(0..6) {
            0 => {
                let mut bytes: Vec<u8> = (0..len).map(|_| rng.random()).collect();
                let (buffer, model) = &mut self.buffers[at];
                queue.write(buffer, offset, &bytes).unwrap();
                model[offset..offset + len].copy_from_slice(&bytes);
                // The queue must have its own copy.
                bytes.fill(0xee);
            }
            1 => {
                let byte = if rng.random() { 0 } else { rng.random() };
                let (buffer, model) = &mut self.buffers[at];
                queue.fill(buffer, offset, len, byte).unwrap();
                model[offset..offset + len].fill(byte);
            }
            2 => {
                let from = rng.random_range(0..self.buffers.len());
                let (start, longest) = Self::range(rng, SIZES[from]);
                let len = len.min(longest);
                if from == at && start.abs_diff(offset) < len {
                    return;
                }
                let bytes = self.buffers[from].1[start..start + len].to_vec();
                let (source, target) = (&self.buffers[from].0, &self.buffers[at].0);
                queue.copy(source, start, target, offset, len).unwrap();
                self.buffers[at].1[offset..offset + len].copy_from_slice(&bytes);
            }
            3 => {
                let ticket = queue.read(&self.buffers[at].0, offset, len).unwrap();
                let expected = self.buffers[at].1[offset..offset + len].to_vec();
                self.tickets.push((ticket, expected));
            }
            4 => {
                let which = rng.random_range(0..self.programs.len());
                let Copying {
                    program,
                    from: (from, start),
                    to: (to, end),
                    len,
                } = &self.programs[which];
                queue.launch(program.as_ref(), &[]).unwrap();
                let bytes = self.buffers[*from].1[*start..start + len].to_vec();
                self.buffers[*to].1[*end..end + len].copy_from_slice(&bytes);
            }
            _ => {
                if !self.tickets.is_empty() {
                    let which = rng.random_range(0..self.tickets.len());
                    let (ticket, expected) = self.tickets.swap_remove(which);
                    assert_eq!(ticket.wait().unwrap(), expected);
                }
            }
        }
    }

    fn finish(mut self, backend: &dyn Backend) {
        for (ticket, expected) in self.tickets.drain(..) {
            assert_eq!(ticket.wait().unwrap(), expected);
        }
        for (buffer, expected) in &self.buffers {
            assert_eq!(&read(backend, buffer), expected);
        }
    }
}

#[test]
fn a_thousand_interleavings_agree_with_a_sequential_model() {
    const INTERLEAVINGS: u64 = 1000;
    let backend = device(1);
    let mut rng = StdRng::seed_from_u64(1);
    let mut model = Model::new(&backend, &mut rng);
    for seed in 0..INTERLEAVINGS {
        let mut rng = StdRng::seed_from_u64(seed);
        for _ in 0..rng.random_range(2..12) {
            model.step(&backend, &mut rng);
        }
        if seed % 100 == 99 {
            model.finish(&backend);
            model = Model::new(&backend, &mut rng);
        }
    }
    model.finish(&backend);
}

#[test]
fn eight_threads_share_the_queue() {
    let backend = device(2);
    thread::scope(|scope| {
        for seed in 0..8 {
            let backend = &backend;
            scope.spawn(move || {
                let mut rng = StdRng::seed_from_u64(1000 + seed);
                let mut model = Model::new(backend, &mut rng);
                for _ in 0..60 {
                    model.step(backend, &mut rng);
                }
                model.finish(backend);
            });
        }
    });
    settle(&backend);
}
