/* bindings/python/src/exchange.c: a call of a remote function with arrays as one step, for heddle.rpc: the packet is put together,
 * sent, and what comes first of the reply is received, without Python's sockets between. */
#include "module.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

enum { HEAD = 8, ROOM = 4096 };

static PyObject *name_session, *name_tagged; /* attributes of a RemoteArray */

typedef struct packet {
  size_t used;
  char data[ROOM];
} packet;

static bool put(packet *p, PyObject *bytes) {
  char *data;
  Py_ssize_t n;
  if (!PyBytes_Check(bytes) || PyBytes_AsStringAndSize(bytes, &data, &n) < 0) return false;
  if ((size_t)n > ROOM - p->used) return false;
  memcpy(p->data + p->used, data, (size_t)n);
  p->used += (size_t)n;
  return true;
}

static bool put_argument(packet *p, PyObject *argument, PyObject *session) {
  PyObject *of = PyObject_GetAttr(argument, name_session);
  PyObject *tagged = of == session ? PyObject_GetAttr(argument, name_tagged) : NULL;
  const bool good = tagged != NULL && put(p, tagged);
  Py_XDECREF(of);
  Py_XDECREF(tagged);
  if (!good) PyErr_Clear();
  return good;
}

static void put_number(char *to, uint64_t n, int bytes) {
  for (int i = 0; i < bytes; i++) to[i] = (char)(n >> 8 * i & 255);
}

static bool build(packet *p, PyObject *head, PyObject *args, PyObject *session) {
  const Py_ssize_t n = PyTuple_Size(args);
  p->used = HEAD;
  if (n < 0 || !put(p, head) || ROOM - p->used < 4) return false;
  put_number(p->data + p->used, (uint64_t)n, 4);
  p->used += 4;
  for (Py_ssize_t i = 0; i < n; i++)
    if (!put_argument(p, PyTuple_GetItem(args, i), session)) return false;
  put_number(p->data, p->used - HEAD, HEAD);
  return true;
}

/* One call of the system that blocks, again where a signal came whose handler raised nothing. */
static ssize_t move(int fd, char *data, size_t n, bool sends) {
  for (;;) {
    ssize_t moved;
    Py_BEGIN_ALLOW_THREADS;
    moved = sends ? send(fd, data, n, MSG_NOSIGNAL) : recv(fd, data, n, 0);
    Py_END_ALLOW_THREADS;
    if (moved >= 0) return moved;
    const bool is_signal = errno == EINTR;
    if (!is_signal) PyErr_SetFromErrno(PyExc_OSError);
    if (!is_signal || PyErr_CheckSignals() < 0) return -1;
  }
}

static PyObject *exchange(PyObject *module, PyObject *args) {
  int fd;
  PyObject *head, *arrays, *session;
  packet p;
  (void)module;
  if (!PyArg_ParseTuple(args, "iO!O!O:exchange", &fd, &PyBytes_Type, &head, &PyTuple_Type, &arrays, &session))
    return NULL;
  if (!build(&p, head, arrays, session)) Py_RETURN_NONE;
  for (size_t done = 0; done < p.used;) {
    const ssize_t put_now = move(fd, p.data + done, p.used - done, true);
    if (put_now < 0) return NULL;
    done += (size_t)put_now;
  }
  const ssize_t got = move(fd, p.data, ROOM, false);
  return got >= 0 ? PyBytes_FromStringAndSize(p.data, got) : NULL;
}

int heddle_py_exchange_init(PyObject *module) {
  static PyMethodDef functions[] = {{"exchange", exchange, METH_VARARGS,
                                     "exchange(fd, head, args, session) -> bytes | None\n\nSends a packet of TVM's "
                                     "RPC: the bytes head, and arguments that "
                                     "are\nall arrays of the session; gives what comes first of the reply (b\"\": the "
                                     "connection has ended). None, and\n"
                                     "nothing is sent, where an argument is anything else, or the packet is long."},
                                    {NULL, NULL, 0, NULL}};
  name_session = PyUnicode_InternFromString("_session");
  name_tagged = PyUnicode_InternFromString("tagged");
  return name_session == NULL || name_tagged == NULL || PyModule_AddFunctions(module, functions) < 0 ? -1 : 0;
}
