/* The application that a board runs when it has no other: the session server. */
#include "uaccel_port.h"
#include "uaccel_server.h"

int main(void)
{
    uaccel_port_init();
    uaccel_serve();
    return 0;
}
