/* remote/server.h: the listening process of heddle device-server: it opens no device and reads no message; each client that
 * says something gets a process of its own, in which it is authenticated and served. */
#ifndef HEDDLE_REMOTE_SERVER_H
#define HEDDLE_REMOTE_SERVER_H

#include "plugins/common/remote/tls.h"
#include "remote/offer.h"
#include "remote/session.h"

typedef struct remote_server_options {
  const char *host; /* of TCP; NULL: none */
  uint16_t port;
  const char *unix_path; /* NULL: none */
  bool is_stdio;
  tls_options tls;        /* psk, or cert, key and ca; all NULL: none */
  remote_tracker tracker; /* knows the TCP address */
  uint32_t sessions;
  remote_limits limits;
} remote_server_options;

/* Serves until a signal ends it. 0, or 1 with a line on stderr. */
int remote_server_run(const remote_server_options *o);

#endif
