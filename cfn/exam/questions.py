"""The list of questions."""

from cfn.exam import counting, learning
from cfn.exam.base import Question

QUESTIONS = {
    question.name: question
    for question in (
        Question(
            "counts",
            "Is the bonus 1 / sqrt(N)? On a gridworld walk, Visual Taxi, one-hot states and continuous blobs.",
            "mse",
            "mean squared error, 0 is perfect",
            f"Spearman at least {counting.MIN_SPEARMAN} and error at most {counting.MAX_MSE} on every stream",
            counting.counts,
        ),
        Question(
            "decay",
            "How fast does the bonus fall with visits? Exponent p of B ~ N^-p.",
            "exponent",
            "exponent p, 0.5 is true",
            "p between {} and {}".format(*counting.EXPONENTS),
            counting.decay,
        ),
        Question(
            "unseen",
            "Does the bonus tell states that were never visited from visited ones?",
            "auc",
            "AUC, 1 is perfect",
            f"AUC at least {counting.MIN_AUC} and mean bonus between {counting.UNSEEN[0]} and {counting.UNSEEN[1]}",
            counting.unseen,
        ),
        Question(
            "speed",
            "After how many visits is the bonus of a new state within 20% of the truth, while old ones keep coming?",
            "visits",
            "visits to the state, fewer are better",
            f"at most {learning.MAX_VISITS} visits",
            learning.speed,
        ),
        Question(
            "memory",
            "How much does the bonus of a state grow while only others are visited?",
            "drift",
            "growth factor, 1 is perfect",
            f"at most {learning.MAX_DRIFT}",
            learning.memory,
        ),
        Question(
            "order",
            "How different are the bonuses after the same visits in another order?",
            "difference",
            "relative difference, 0 is perfect",
            f"at most {learning.MAX_DIFFERENCE}",
            learning.order,
        ),
        Question(
            "noise",
            "Does the bonus still fall with visits if a part of the image is random at every visit?",
            "exponent",
            "exponent p, 0.5 is true",
            f"p at least {counting.MIN_NOISY_EXPONENT}",
            counting.noise,
        ),
        Question(
            "scale",
            "Is the bonus on the scale of 1 / sqrt(N), or on its own?",
            "factor",
            "mean of B sqrt(N), 1 is true",
            "factor between {} and {}".format(*counting.FACTORS),
            counting.scale,
        ),
        Question(
            "cost",
            "What does a visit cost in time and memory?",
            "visit_ms",
            "CPU milliseconds per visit with its updates",
            "none",
            learning.cost,
        ),
    )
}
"""Questions by name, in the order in which they are asked."""
