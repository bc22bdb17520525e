/* microTVM's templates want a library or a folder of this name; models of uaccel need nothing of it. */
typedef int uaccel_crt_has_no_microtvm_rpc_server;
