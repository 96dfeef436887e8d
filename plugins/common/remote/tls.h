/* TLS 1.3 over a transport's socket, by OpenSSL, with both ends authenticated: by certificates of one authority, or by a key
 * that both have. No earlier version, no session tickets, no early data: nothing can be replayed. */
#ifndef HEDDLE_PLUGINS_COMMON_REMOTE_TLS_H
#define HEDDLE_PLUGINS_COMMON_REMOTE_TLS_H

#include "plugins/common/remote/transport.h"

enum { TLS_WHY = 400 };

/* Paths of files: psk, or all of cert, key and ca; the others are NULL. */
typedef struct tls_options {
  const char *cert; /* this end's certificate and those between it and the authority's, PEM */
  const char *key;  /* PEM */
  const char *ca;   /* the authority's certificate, PEM */
  const char *psk;  /* a file of heddle keys */
  const char *name; /* of the other end, as its certificate must have it: a host name or an address; NULL: any */
  bool is_server;
  int64_t limit_ms; /* of the handshake */
} tls_options;

/* The handshake, on a transport that transport_init made. false: why[TLS_WHY] has the reason, and t is as before. Blocks. */
bool tls_start(transport *t, const tls_options *o, char *why);

/* Whether the files can be used. */
bool tls_check(const tls_options *o, char *why);

/* A file of keys has one line for each key: "heddle-psk-1 NAME HEX", the key's 32 bytes as 64 hexadecimal digits. It must not be
 * readable by others than its owner. Makes such a file with a new key; false: it exists, or cannot be written. */
bool tls_make_psk(const char *path, const char *name, char *why);

#endif
