/* Any bytes as what a server, a tracker and a client of TVM's RPC get: a handshake, packets of a session, messages to a tracker,
 * replies to a client. No crash and no leak; what reaches TVM's functions, for which this file stands, lies within memory
 * that the session handed out. The first byte says which; packets and messages have two bytes of length before them. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <tvm/runtime/c_runtime_api.h>
#include <unistd.h>

#include "rpc/client/client.h"
#include "rpc/server.h"
#include "rpc/tracker.h"

/* ---- in place of libheddle_tvm */

typedef struct object {
  int kind; /* FUNCTION, MODULE, STREAM */
} object;

typedef struct array {
  DLTensor t;
  int64_t shape[2];
  char data[24];
} array;

enum { FUNCTION = 1, MODULE, STREAM };

static int live;

static void *make(int kind) {
  object *o = malloc(sizeof *o);
  if (o == NULL) abort();
  o->kind = kind;
  live++;
  return o;
}

static int drop(void *p, int kind) {
  if (((object *)p)->kind != kind) abort();
  live--;
  free(p);
  return 0;
}

const char *TVMGetLastError(void) {
  return "it failed";
}

int TVMFuncGetGlobal(const char *name, TVMFunctionHandle *out) {
  *out = strlen(name) % 4 == 3 ? NULL : make(FUNCTION);
  return 0;
}

int TVMFuncFree(TVMFunctionHandle f) {
  return drop(f, FUNCTION);
}

int TVMModFree(TVMModuleHandle m) {
  return drop(m, MODULE);
}

int TVMArrayFree(TVMArrayHandle a) {
  live--;
  free(a);
  return 0;
}

int TVMStreamCreate(int type, int number, TVMStreamHandle *out) {
  (void)number;
  if (type < 0) return -1;
  *out = make(STREAM);
  return 0;
}

int TVMStreamFree(int type, int number, TVMStreamHandle s) {
  (void)type, (void)number;
  return drop(s, STREAM);
}

static int check_stream(const object *s) {
  if (s != NULL && s->kind != STREAM) abort();
  return 0;
}

int TVMSetStream(int type, int number, TVMStreamHandle s) {
  (void)type, (void)number;
  return check_stream(s);
}

int TVMSynchronize(int type, int number, TVMStreamHandle s) {
  (void)type, (void)number;
  return check_stream(s);
}

int TVMDeviceAllocDataSpace(DLDevice dev, size_t bytes, size_t alignment, DLDataType dtype, void **out) {
  (void)dtype;
  if (dev.device_type < 0 || alignment > 4096) return -1;
  *out = calloc(1, bytes > 0 ? bytes : 1);
  if (*out == NULL) return -1;
  live++;
  return 0;
}

int TVMDeviceFreeDataSpace(DLDevice dev, void *p) {
  (void)dev;
  live--;
  free(p);
  return 0;
}

/* Reads each byte: AddressSanitizer sees where one is not there. */
static unsigned touch(const DLTensor *t) {
  uint64_t n = ((uint64_t)t->dtype.bits * t->dtype.lanes + 7) / 8;
  unsigned sum = 0;
  for (int i = 0; i < t->ndim; i++) n *= (uint64_t)t->shape[i];
  for (uint64_t i = 0; i < n; i++) sum += ((const unsigned char *)t->data + t->byte_offset)[i];
  return sum;
}

int TVMDeviceCopyDataFromTo(DLTensor *from, DLTensor *to, TVMStreamHandle stream) {
  check_stream(stream);
  if (from->ndim != 1 || to->ndim != 1 || from->shape[0] != to->shape[0]) abort();
  volatile unsigned sum = touch(from) + touch(to);
  (void)sum;
  memmove((char *)to->data + to->byte_offset, (const char *)from->data + from->byte_offset, (size_t)from->shape[0]);
  return 0;
}

static void *make_array(void) {
  array *a = calloc(1, sizeof *a);
  if (a == NULL) abort();
  a->shape[0] = 2;
  a->shape[1] = 3;
  a->t = (DLTensor){.data = a->data, .device = {kDLCPU, 0}, .ndim = 2, .dtype = {kDLFloat, 32, 1}, .shape = a->shape};
  live++;
  return a;
}

/* Gives what its number of arguments says. */
int TVMFuncCall(TVMFunctionHandle f, TVMValue *args, int *codes, int n, TVMValue *ret, int *code) {
  static const TVMByteArray bytes = {"ab\0c", 4};
  volatile unsigned sum = 0;
  if (((object *)f)->kind != FUNCTION) abort();
  for (int i = 0; i < n; i++) switch (codes[i]) {
    case kTVMStr: sum += (unsigned)strlen(args[i].v_str); break;
    case kTVMBytes:
      for (size_t k = 0; k < ((TVMByteArray *)args[i].v_handle)->size; k++)
        sum += (unsigned char)((TVMByteArray *)args[i].v_handle)->data[k];
      break;
    case kTVMDLTensorHandle:
    case kTVMNDArrayHandle: sum += touch(args[i].v_handle); break;
    case kTVMModuleHandle:
      if (((object *)args[i].v_handle)->kind != MODULE) abort();
      break;
    case kTVMPackedFuncHandle:
      if (((object *)args[i].v_handle)->kind != FUNCTION) abort();
      break;
    case kTVMOpaqueHandle: check_stream(args[i].v_handle); break;
    default: break;
    }
  (void)sum;
  *code = kTVMNullptr;
  switch (n) {
  case 1: *code = kTVMStr, ret->v_str = "text"; break;
  case 2: *code = kTVMBytes, ret->v_handle = (void *)(uintptr_t)&bytes; break;
  case 3: *code = kTVMArgInt, ret->v_int64 = 7; break;
  case 4: *code = kTVMNDArrayHandle, ret->v_handle = make_array(); break;
  case 5: *code = kTVMModuleHandle, ret->v_handle = make(MODULE); break;
  case 6: *code = kTVMPackedFuncHandle, ret->v_handle = make(FUNCTION); break;
  case 7: return -1;
  case 8: *code = kTVMArgFloat, ret->v_float64 = 0.5; break;
  case 9: *code = 99; break;
  default: break;
  }
  return 0;
}

/* ---- in place of the server's own functions */

int rpc_own_find(const char *name) {
  return name[0] == 't' ? 0 : -1;
}

rpc_outcome rpc_own_call(rpc_session *s, uint32_t index, const rpc_value *args, uint32_t n) {
  if (index != 0) abort();
  return n > 0 ? rpc_give_result(s, args[0]) : rpc_give_nothing(s);
}

/* ---- the targets */

static void send_text(void *user, uint32_t connection, const char *text) {
  if (connection > 3 || text[0] == '\0') abort();
  *(size_t *)user += strlen(text);
}

/* Packets or messages, each with its length before it; NULL: there is no more. */
static const uint8_t *next(const uint8_t **at, size_t *left, size_t *n) {
  if (*left < 2) return NULL;
  *n = (size_t)((*at)[0] | (*at)[1] << 8);
  const uint8_t *data = *at + 2;
  if (*n > *left - 2) *n = *left - 2;
  *at += 2 + *n;
  *left -= 2 + *n;
  return data;
}

static void track(const uint8_t *at, size_t left) {
  size_t sent = 0, n;
  uint32_t from = 0;
  rpc_tracker *t = rpc_tracker_new(send_text, &sent);
  if (t == NULL) abort();
  for (const uint8_t *m; (m = next(&at, &left, &n)) != NULL; from = (from + 1) % 4)
    if (!rpc_tracker_message(t, from, "127.0.0.1", (const char *)m, n)) rpc_tracker_close(t, from);
  rpc_tracker_free(t);
}

static void serve(const uint8_t *at, size_t left) {
  rpc_session s = {.socket = -1, .limits = {1 << 20, 1 << 20}};
  volatile unsigned sum = 0;
  size_t n;
  for (const uint8_t *packet; (packet = next(&at, &left, &n)) != NULL;) {
    uint8_t *exact = malloc(n > 0 ? n : 1); /* so that a byte behind it is seen */
    if (exact == NULL) abort();
    memcpy(exact, packet, n);
    bool goes_on = rpc_session_answer(&s, exact, n);
    if (goes_on && s.reply.used < 12) abort();
    for (size_t i = 0; goes_on && i < s.tail_bytes; i++) sum += ((const uint8_t *)s.tail)[i];
    free(exact);
    if (!goes_on) break;
  }
  (void)sum;
  rpc_session_finish(&s);
  if (live != 0) abort();
}

static void shake(const uint8_t *data, size_t n) {
  char match[RPC_LONGEST_KEY + 1];
  double seconds;
  size_t used = 0;
  if (rpc_handshake(data, n, match, &seconds, &used) != HEDDLE_OK) return;
  if (used > n || strlen(match) > RPC_LONGEST_KEY || !(seconds >= 0 && seconds < 1e12)) abort();
}

/* All that a server sends, as replies to a client that asks in order; the first byte is the era. */
static void ask(const uint8_t *data, size_t n) {
  enum { MOST = 1 << 15 }; /* fits into a socket */
  heddle_error err = {0};
  heddle_rpc_value result;
  heddle_rpc_tensor t = {.data = 1, .device_type = 1, .dtype = {2, 32, 1}, .ndim = 1, .shape = {2}};
  const heddle_rpc_value args[3] = {{.kind = HEDDLE_RPC_TENSOR, .of.tensor = &t},
                                    {.kind = HEDDLE_RPC_STRING, .of.s = "x"},
                                    {.kind = HEDDLE_RPC_BYTES, .of.data = "ab", .bytes = 2}};
  double seconds[2];
  char floats[8];
  uint64_t handle = 0;
  const void *bytes = NULL;
  size_t n_bytes = 0;
  int exists = 0, ends[2];
  if (n < 1 || n > MOST || socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return;
  heddle_rpc *rpc = calloc(1, sizeof *rpc);
  if (rpc == NULL || write(ends[1], data + 1, n - 1) != (ssize_t)(n - 1)) abort();
  shutdown(ends[1], SHUT_WR);
  rpc->fd = ends[0];
  rpc->era = (rpc_era)(data[0] % 3);
  for (int i = 0; i < 4; i++) {
    heddle_status s = heddle_rpc_call(rpc, 1, args, 3, &result, &err);
    if (s != HEDDLE_OK && (err.text[0] == '\0' || err.status != s)) abort();
    volatile unsigned sum = 0;
    if (s == HEDDLE_OK && (result.kind == HEDDLE_RPC_STRING || result.kind == HEDDLE_RPC_BYTES))
      for (uint64_t k = 0; k < result.bytes; k++) sum += ((const uint8_t *)result.of.data)[k];
    if (s == HEDDLE_OK && result.kind == HEDDLE_RPC_TENSOR)
      for (uint32_t k = 0; k < result.of.tensor->ndim; k++) sum += (unsigned)result.of.tensor->shape[k];
    (void)sum;
  }
  (void)heddle_rpc_call(rpc, 1, args, 3, NULL, &err);
  (void)heddle_rpc_read(rpc, &t, floats, sizeof floats, &err);
  (void)heddle_rpc_write(rpc, &t, floats, sizeof floats, &err);
  (void)heddle_rpc_function(rpc, 0, "f", &handle, &err);
  (void)heddle_rpc_function(rpc, 1, "f", &handle, &err);
  if (heddle_rpc_download(rpc, "f", &bytes, &n_bytes, &err) == HEDDLE_OK && n_bytes > n) abort();
  (void)heddle_rpc_load(rpc, "f", &handle, &err);
  (void)heddle_rpc_device_exists(rpc, 1, 0, &exists, &err);
  (void)heddle_rpc_tensor_create(rpc, 1, 0, t.dtype, t.shape, 1, &t, &err);
  (void)heddle_rpc_time(rpc, 1, "f", 1, 0, NULL, 0, 1, 2, 0, seconds, &err);
  heddle_rpc_close(rpc);
  close(ends[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) return 0;
  switch (data[0] % 4) {
  case 0: shake(data + 1, size - 1); break;
  case 1: serve(data + 1, size - 1); break;
  case 3: ask(data + 1, size - 1); break;
  default: track(data + 1, size - 1); break;
  }
  return 0;
}
