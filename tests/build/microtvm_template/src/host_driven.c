#include <tvm/runtime/crt/microtvm_rpc_server.h>
