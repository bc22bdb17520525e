/* microTVM's templates want this folder; models of uaccel need nothing of it. */
