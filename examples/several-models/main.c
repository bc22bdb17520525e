/* Each sound frame by frame, as a microphone would give it. */
#include <stdio.h>

#include "ear.h"
#include "sounds.h" /* as two_sounds.py writes it */

enum { SOUNDS = sizeof sounds / sizeof sounds[0], FRAMES = sizeof sounds[0] / sizeof sounds[0][0] };

int main(void)
{
    static int8_t scores[TVMGEN_CLASSIFIER_SCORES_COUNT];
    for (int sound = 0; sound < SOUNDS; ++sound) {
        ear_reset();
        printf("%s:", names[sound]);
        for (int i = 0; i < FRAMES; ++i) {
            const int32_t status = ear_hear(sounds[sound][i], scores);
            if (status < 0) {
                return 1;
            }
            if (status != EAR_NOTHING_YET) {
                printf(" %s", scores[0] > scores[1] ? "low" : "high");
            }
        }
        printf("\n");
    }
    return 0;
}
