/* mpi/mpi.c: contexts over a communicator of MPI (libheddle_mpi): its transport for heddle/ranks.h, by persistent requests on
 * a duplicate of the communicator, so that no message of the application is mistaken for one of ours. */
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <mpi.h>

#include "heddle/mpi.h"

enum { UNIT = 1 << 20, MOST_NOTES = 64 };

typedef struct request {
  MPI_Request handle;
  MPI_Datatype type; /* MPI_BYTE, or one of ours for what an int cannot count */
  bool active;
} request;

typedef struct note {
  MPI_Request handle;
  bool active;
  unsigned char bytes[HEDDLE_COMM_NOTE_BYTES];
} note;

typedef struct transport {
  MPI_Comm comm, notes;
  bool finalizes;
  note sent[MOST_NOTES];
} transport;

/* ---- errors */

static heddle_status fail(heddle_error *err, heddle_status s, const char *text) {
  if (err == NULL) return s;
  err->status = s;
  snprintf(err->text, sizeof err->text, "%s", text);
  return s;
}

static heddle_status check(int code, const char *what, heddle_error *err) {
  char text[MPI_MAX_ERROR_STRING + 1] = "", whole[MPI_MAX_ERROR_STRING + 100];
  int n = 0;
  if (code == MPI_SUCCESS) return HEDDLE_OK;
  if (MPI_Error_string(code, text, &n) != MPI_SUCCESS) snprintf(text, sizeof text, "error %d", code);
  snprintf(whole, sizeof whole, "MPI: %s: %s", what, text);
  return fail(err, HEDDLE_EFAILED, whole);
}

/* ---- requests */

/* A type that is so many bytes: MPI counts elements with an int. */
static heddle_status large_type(uint64_t bytes, MPI_Datatype *out, heddle_error *err) {
  const uint64_t units = bytes / UNIT;
  MPI_Datatype unit = MPI_DATATYPE_NULL, many = MPI_DATATYPE_NULL;
  if (units > INT_MAX) return fail(err, HEDDLE_ELIMIT, "MPI: a message is larger than 2 PiB");
  int code = MPI_Type_contiguous(UNIT, MPI_BYTE, &unit);
  if (code == MPI_SUCCESS) code = MPI_Type_contiguous((int)units, unit, &many);
  const int lengths[2] = {1, (int)(bytes % UNIT)};
  const MPI_Aint places[2] = {0, (MPI_Aint)(units * UNIT)};
  const MPI_Datatype types[2] = {many, MPI_BYTE};
  if (code == MPI_SUCCESS) code = MPI_Type_create_struct(2, lengths, places, types, out);
  if (code == MPI_SUCCESS) code = MPI_Type_commit(out);
  if (many != MPI_DATATYPE_NULL) MPI_Type_free(&many);
  if (unit != MPI_DATATYPE_NULL) MPI_Type_free(&unit);
  return check(code, "a type for a large message", err);
}

static void free_request(void *self, void *any) {
  request *r = any;
  (void)self;
  if (r->active) { /* it is given up: what it holds of MPI stays with MPI */
    (void)MPI_Cancel(&r->handle);
    (void)MPI_Request_free(&r->handle);
  } else if (r->handle != MPI_REQUEST_NULL) {
    (void)MPI_Request_free(&r->handle);
  }
  if (r->type != MPI_BYTE && r->type != MPI_DATATYPE_NULL) (void)MPI_Type_free(&r->type);
  free(r);
}

static heddle_status make_request(transport *t, bool sends, void *data, uint64_t bytes, uint32_t peer, uint32_t tag,
                                  void **out, heddle_error *err) {
  request *r = calloc(1, sizeof *r);
  *out = NULL;
  if (r == NULL) return fail(err, HEDDLE_ENOMEM, "out of memory for a message");
  r->handle = MPI_REQUEST_NULL;
  r->type = MPI_BYTE;
  int count = (int)bytes;
  heddle_status s = HEDDLE_OK;
  if (bytes > INT_MAX) {
    s = large_type(bytes, &r->type, err);
    count = 1;
  }
  if (s == HEDDLE_OK)
    s = check(sends ? MPI_Send_init(data, count, r->type, (int)peer, (int)tag, t->comm, &r->handle)
                    : MPI_Recv_init(data, count, r->type, (int)peer, (int)tag, t->comm, &r->handle),
              "a request", err);
  if (s == HEDDLE_OK) *out = r;
  else free_request(t, r);
  return s;
}

static heddle_status send_init(void *self, const void *data, uint64_t bytes, uint32_t to, uint32_t tag, void **out,
                               heddle_error *err) {
  return make_request(self, true, (void *)(uintptr_t)data, bytes, to, tag, out, err);
}

static heddle_status recv_init(void *self, void *data, uint64_t bytes, uint32_t from, uint32_t tag, void **out,
                               heddle_error *err) {
  return make_request(self, false, data, bytes, from, tag, out, err);
}

static heddle_status start(void *self, void *any, heddle_error *err) {
  request *r = any;
  (void)self;
  heddle_status s = check(MPI_Start(&r->handle), "the start of a message", err);
  r->active = s == HEDDLE_OK;
  return s;
}

static heddle_status test(void *self, void *any, int *done, heddle_error *err) {
  request *r = any;
  (void)self;
  *done = 0;
  heddle_status s = check(MPI_Test(&r->handle, done, MPI_STATUS_IGNORE), "a message", err);
  if (s != HEDDLE_OK || *done) r->active = false;
  return s;
}

/* ---- notes: small, so that MPI buffers them; a few may be under way */

static bool is_free(note *n) {
  int done = 0;
  if (!n->active) return true;
  if (MPI_Test(&n->handle, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) done = 1;
  n->active = !done;
  return done != 0;
}

static heddle_status send_note(void *self, const void *bytes, uint32_t n, uint32_t to, heddle_error *err) {
  transport *t = self;
  if (n > HEDDLE_COMM_NOTE_BYTES) return fail(err, HEDDLE_EINVAL, "a note is too long");
  for (int i = 0; i < MOST_NOTES; i++) {
    note *place = &t->sent[i];
    if (!is_free(place)) continue;
    memcpy(place->bytes, bytes, n);
    heddle_status s =
        check(MPI_Isend(place->bytes, (int)n, MPI_BYTE, (int)to, 0, t->notes, &place->handle), "a note", err);
    place->active = s == HEDDLE_OK;
    return s;
  }
  return fail(err, HEDDLE_EBUSY, "too many notes are under way");
}

static heddle_status take_note(void *self, void *bytes, uint32_t *n, uint32_t *from, heddle_error *err) {
  transport *t = self;
  MPI_Status status;
  int there = 0, count = 0;
  *n = 0;
  heddle_status s = check(MPI_Iprobe(MPI_ANY_SOURCE, 0, t->notes, &there, &status), "notes", err);
  if (s != HEDDLE_OK || !there) return s;
  s = check(MPI_Get_count(&status, MPI_BYTE, &count), "notes", err);
  if (s == HEDDLE_OK && (count <= 0 || count > HEDDLE_COMM_NOTE_BYTES))
    s = fail(err, HEDDLE_EFORMAT, "MPI: a note of odd length");
  if (s == HEDDLE_OK)
    s = check(MPI_Recv(bytes, count, MPI_BYTE, status.MPI_SOURCE, 0, t->notes, MPI_STATUS_IGNORE), "a note", err);
  *n = s == HEDDLE_OK ? (uint32_t)count : 0;
  *from = (uint32_t)status.MPI_SOURCE;
  return s;
}

/* ---- begin and end */

/* Takes what is left of notes until all ranks are here: MPI_Finalize would wait for them too, and then find these unread. */
static void drain(transport *t) {
  const struct timespec moment = {0, 1000000};
  unsigned char bytes[HEDDLE_COMM_NOTE_BYTES];
  MPI_Request all = MPI_REQUEST_NULL;
  int done = 0;
  if (MPI_Ibarrier(t->comm, &all) != MPI_SUCCESS) return;
  for (;;) {
    uint32_t n = 1, from = 0;
    while (n > 0 && take_note(t, bytes, &n, &from, NULL) == HEDDLE_OK) continue;
    if (done || MPI_Test(&all, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return;
    if (!done) nanosleep(&moment, NULL);
  }
}

static void release(void *self, int lost) {
  transport *t = self;
  const struct timespec moment = {0, 20000000};
  for (int k = 0; k < 25; k++) { /* notes reach their ranks before this process ends */
    bool all = true;
    for (int i = 0; i < MOST_NOTES; i++) all = is_free(&t->sent[i]) && all;
    if (all && !lost) break;
    nanosleep(&moment, NULL);
  }
  if (!lost) { /* else these would wait for the rank that is gone */
    if (t->finalizes && t->comm != MPI_COMM_NULL) drain(t);
    if (t->comm != MPI_COMM_NULL) (void)MPI_Comm_free(&t->comm);
    if (t->notes != MPI_COMM_NULL) (void)MPI_Comm_free(&t->notes);
    if (t->finalizes) (void)MPI_Finalize();
  }
  free(t);
}

static heddle_status begin(bool *finalizes, heddle_error *err) {
  int there = 0, level = MPI_THREAD_SINGLE;
  *finalizes = false;
  heddle_status s = check(MPI_Initialized(&there), "its start", err);
  if (s == HEDDLE_OK && !there) {
    s = check(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level), "its start", err);
    *finalizes = s == HEDDLE_OK;
  } else if (s == HEDDLE_OK) {
    s = check(MPI_Query_thread(&level), "its threads", err);
  }
  if (s == HEDDLE_OK && level < MPI_THREAD_SERIALIZED)
    s = fail(err, HEDDLE_EINVAL, "MPI was initialised without MPI_THREAD_SERIALIZED, which a context of ranks needs");
  return s;
}

static heddle_status connect_ranks(transport *t, MPI_Comm comm, heddle_comm *out, heddle_error *err) {
  int rank = 0, size = 0, found = 0;
  int *most = NULL;
  heddle_status s = check(MPI_Comm_dup(comm, &t->comm), "a duplicate of the communicator", err);
  if (s == HEDDLE_OK) s = check(MPI_Comm_dup(comm, &t->notes), "a duplicate of the communicator", err);
  if (s == HEDDLE_OK) s = check(MPI_Comm_set_errhandler(t->comm, MPI_ERRORS_RETURN), "its errors", err);
  if (s == HEDDLE_OK) s = check(MPI_Comm_set_errhandler(t->notes, MPI_ERRORS_RETURN), "its errors", err);
  if (s == HEDDLE_OK) s = check(MPI_Comm_rank(t->comm, &rank), "the rank", err);
  if (s == HEDDLE_OK) s = check(MPI_Comm_size(t->comm, &size), "the number of ranks", err);
  if (s == HEDDLE_OK) s = check(MPI_Comm_get_attr(t->comm, MPI_TAG_UB, &most, &found), "the tags", err);
  *out = (heddle_comm){.struct_size = sizeof *out,
                       .self = t,
                       .rank = (uint32_t)rank,
                       .size = (uint32_t)size,
                       .max_tag = s == HEDDLE_OK && found ? (uint64_t)*most : 32767, /* the least that MPI allows */
                       .send_init = send_init,
                       .recv_init = recv_init,
                       .start = start,
                       .test = test,
                       .free = free_request,
                       .send_note = send_note,
                       .take_note = take_note,
                       .release = release};
  return s;
}

heddle_status heddle_context_create_mpi(const void *comm, const heddle_setting *settings, size_t n_settings,
                                        heddle_log_fn log, void *log_user, heddle_context **out, heddle_error *err) {
  if (out == NULL) return fail(err, HEDDLE_EINVAL, "there is no place for the context: out is NULL");
  *out = NULL;
  bool finalizes = false;
  heddle_status s = begin(&finalizes, err);
  if (s != HEDDLE_OK) return s;
  MPI_Comm from = MPI_COMM_WORLD;
  if (comm != NULL) memcpy(&from, comm, sizeof from);
  transport *t = calloc(1, sizeof *t);
  if (t == NULL || from == MPI_COMM_NULL) {
    free(t);
    return t == NULL ? fail(err, HEDDLE_ENOMEM, "out of memory for a context of ranks")
                     : fail(err, HEDDLE_EINVAL, "the communicator is MPI_COMM_NULL");
  }
  t->comm = t->notes = MPI_COMM_NULL;
  t->finalizes = finalizes;
  heddle_comm table;
  s = connect_ranks(t, from, &table, err);
  if (s != HEDDLE_OK) {
    release(t, 0);
    return s;
  }
  return heddle_context_create_ranks(&table, settings, n_settings, log, log_user, out, err);
}
