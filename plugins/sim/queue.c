/* The queue between the caller of a stream and its thread: a ring of chunks, of which the writer owns those that the
 * reader has left. Putting a command in is a copy and an addition; a new chunk is allocated only when the ring is full.
 *
 * A chunk is used again when done is past its last command by at least one: the reader has then read its next pointer,
 * so the writer may put a chunk behind it. What is written to a chunk is published by tail (sequentially consistent)
 * and given back by done. */
#include "stream.h"

static sim_chunk *chunk_new(const heddle_host *host) {
  return host->alloc(host->ctx, sizeof(sim_chunk), _Alignof(sim_chunk));
}

heddle_status sim_queue_init(heddle_pstream *stream, heddle_error *err) {
  const heddle_host *host = stream->self->host;
  sim_chunk *a = chunk_new(host), *b = chunk_new(host);
  if (a == NULL || b == NULL) {
    host->free(host->ctx, a);
    host->free(host->ctx, b);
    return p_fail(err, HEDDLE_ENOMEM, 0, "no memory for the queue of a stream");
  }
  a->next = b;
  b->next = a;
  a->base = 0;
  b->base = UINT64_MAX; /* never used */
  stream->put = stream->get = a;
  return HEDDLE_OK;
}

void sim_queue_finish(heddle_pstream *stream) {
  const heddle_host *host = stream->self->host;
  sim_chunk *first = stream->put, *chunk = first;
  if (first == NULL) return;
  do {
    sim_chunk *next = chunk->next;
    host->free(host->ctx, chunk);
    chunk = next;
  } while (chunk != first);
  stream->put = stream->get = NULL;
}

static heddle_status next_chunk(heddle_pstream *stream, heddle_error *err) {
  const heddle_host *host = stream->self->host;
  sim_chunk *next = stream->put->next;
  uint64_t done = atomic_load_explicit(&stream->done, memory_order_acquire);
  if (next->base != UINT64_MAX && done < next->base + SIM_CHUNK + 1) {
    next = chunk_new(host);
    if (next == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "no memory for more pending commands on a stream");
    next->next = stream->put->next;
    stream->put->next = next;
  }
  next->base = stream->head;
  stream->put = next;
  stream->put_index = 0;
  return HEDDLE_OK;
}

heddle_status sim_push(heddle_pstream *stream, const sim_cmd *cmd, heddle_error *err) {
  if (stream->capture != NULL) return sim_graph_add(stream->capture, cmd, err);
  if (stream->put_index == SIM_CHUNK) {
    heddle_status status = next_chunk(stream, err);
    if (status != HEDDLE_OK) return status;
  }
  stream->put->cmds[stream->put_index++] = *cmd;
  stream->head++;
  return HEDDLE_OK;
}

void sim_submit(heddle_pstream *stream) {
  if (atomic_load_explicit(&stream->tail, memory_order_relaxed) == stream->head) return;
  atomic_store(&stream->tail, stream->head);
  if (!atomic_load(&stream->sleeping)) return;
  /* The worker holds the lock from saying that it sleeps until it does: after this pair it can be woken. */
  pthread_mutex_lock(&stream->lock);
  pthread_mutex_unlock(&stream->lock);
  pthread_cond_signal(&stream->wake);
}

sim_cmd *sim_queue_next(heddle_pstream *stream) {
  if (stream->get_index == SIM_CHUNK) {
    stream->get = stream->get->next;
    stream->get_index = 0;
  }
  return &stream->get->cmds[stream->get_index++];
}
