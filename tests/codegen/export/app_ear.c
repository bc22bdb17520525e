/* The example's pipeline: after each frame its status, and the scores where there are new ones. */
#include "ear.h"
#include "send.h"
#include "sounds.h"

enum { SOUNDS = sizeof sounds / sizeof sounds[0], FRAMES = sizeof sounds[0] / sizeof sounds[0][0] };

int main(void)
{
    uaccel_port_init();
    for (int sound = 0; sound < SOUNDS; ++sound) {
        ear_reset();
        for (int i = 0; i < FRAMES; ++i) {
            int8_t scores[TVMGEN_CLASSIFIER_SCORES_COUNT];
            const int8_t status = (int8_t)ear_hear(sounds[sound][i], scores);
            send(&status, 1);
            if (status == 0) {
                send(scores, sizeof scores);
            }
        }
    }
    return 0;
}
