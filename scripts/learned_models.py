"""Write tests/frontend/onnx/learned: small models of scikit-learn by skl2onnx, with rows that they are tried on.

    pip install scikit-learn skl2onnx
    python scripts/learned_models.py

The tests read the files and need neither package.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).resolve().parents[1] / "tests" / "frontend" / "onnx" / "learned"
OPSETS = {"": 17, "ai.onnx.ml": 3}


def classifiers() -> dict[str, Any]:
    from sklearn.ensemble import GradientBoostingClassifier, IsolationForest, RandomForestClassifier
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import Normalizer, StandardScaler
    from sklearn.svm import SVC

    return {
        "logistic": make_pipeline(StandardScaler(), LogisticRegression()),
        "imputed": make_pipeline(SimpleImputer(), Normalizer(), LogisticRegression()),
        "forest": RandomForestClassifier(8, max_depth=4, random_state=0),
        "boosted": GradientBoostingClassifier(n_estimators=5, max_depth=2, random_state=0),
        "vectors": SVC(),
        "bayes": GaussianNB(),
        "neighbours": KNeighborsClassifier(3),
        "perceptron": MLPClassifier((8,), max_iter=60, random_state=0),
        "outliers": IsolationForest(n_estimators=2, max_samples=16, random_state=0),
    }


def pairs() -> dict[str, Any]:
    """Of two classes."""
    from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
    from sklearn.svm import SVC

    return {
        "forest_of_two": RandomForestClassifier(5, max_depth=3, random_state=0),
        "boosted_of_two": GradientBoostingClassifier(n_estimators=5, max_depth=2, random_state=0),
        "vectors_of_two": SVC(kernel="poly"),
    }


def regressors() -> dict[str, Any]:
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.linear_model import LinearRegression
    from sklearn.svm import SVR

    return {
        "line": LinearRegression(),
        "forest_of_numbers": RandomForestRegressor(4, max_depth=3, random_state=0),
        "vectors_of_numbers": SVR(C=10),
    }


def main() -> None:
    from skl2onnx import to_onnx
    from sklearn.datasets import load_iris

    warnings.simplefilter("ignore")
    flowers, species = load_iris(return_X_y=True)
    flowers = flowers.astype(np.float32)
    targets = [(classifiers(), species), (pairs(), species // 2), (regressors(), flowers[:, 3] * 3 - flowers[:, 0])]
    for models, wanted in targets:
        for name, model in models.items():
            kept = slice(None, None, 4) if name in ("neighbours", "vectors_of_numbers") else slice(None)
            model.fit(flowers[kept], wanted[kept])
            made = to_onnx(model, flowers[:1], target_opset=OPSETS)
            (FOLDER / f"{name}.onnx").write_bytes(made.SerializeToString())
    np.save(FOLDER / "rows.npy", flowers[::6])


if __name__ == "__main__":
    main()
