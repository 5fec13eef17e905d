;;; emacs.el --- What a user does  -*- lexical-binding: t -*-

;; Opens a robots.txt, sees what is wrong, asks what a line means, completes a line, mends what is wrong, and saves; lays out an
;; ai.txt and sees its XML; sees what is wrong with a tdmrep.json. What is seen goes into the file "seen".

(require 'seq)

(defvar session-folder default-directory)

(defun session-tell (&rest parts)
  (write-region (concat (mapconcat (lambda (part) (format "%s" part)) parts " ") "\n")
                nil (expand-file-name "seen" session-folder) t 'silent))

(defun session-wait (what done)
  "Let Emacs work as it does between keys, until DONE returns something."
  (let ((end (+ (float-time) 40)) result)
    (while (not (setq result (funcall done)))
      (when (> (float-time) end)
        (error "There is no %s" what))
      (sit-for 0.05))
    result))

(defun session-open (name)
  (execute-kbd-macro (concat (kbd "C-x C-f C-a C-k") (expand-file-name name session-folder) "\r"))
  (session-wait (concat "server for " name) (lambda () (bound-and-true-p eglot--managed-mode))))

(defun session-problems ()
  (mapcar #'flymake-diagnostic-text (flymake-diagnostics)))

(defun session-explanation ()
  "What is said of the place at point, in the echo area or beside it."
  (mapconcat (lambda (name) (if (get-buffer name) (with-current-buffer name (buffer-string)) "")) '("*eldoc*" " *eldoc*") ""))

(defun session ()
  (session-open "robots.txt")
  (dolist (problem (session-wait "problem" #'session-problems))
    (session-tell "problem" problem))
  ;; what a word means
  (goto-char (point-min))
  (execute-kbd-macro (kbd "C-s GPT RET"))
  (session-wait "explanation" (lambda () (string-match-p "OpenAI" (session-explanation))))
  ;; a line is typed, and completed
  (execute-kbd-macro (kbd "M-> Disallow: SPC /a RET cra"))
  (call-interactively (key-binding (kbd "C-M-i"))) ; in a macro the keys that follow would end the question
  (session-tell "completed" (buffer-substring (line-beginning-position) (point)))
  (execute-kbd-macro (kbd "10 RET Disallow: SPC /page.h"))
  (call-interactively (key-binding (kbd "C-M-i")))
  (execute-kbd-macro (kbd "RET"))
  ;; what can be mended is
  (eglot-code-actions (point-min) (point-max) "source.fixAll.comity" t)
  (execute-kbd-macro (kbd "C-x C-s"))
  (session-wait "end of the problem"
                (lambda () (not (seq-some (lambda (problem) (string-match-p "misspelled" problem)) (session-problems)))))
  ;; an ai.txt is laid out, and seen as XML
  (session-open "ai.txt")
  (execute-kbd-macro (kbd "M-x eglot-format-buffer RET C-x C-s"))
  (execute-kbd-macro (kbd "M-x comity-other-form RET"))
  (session-tell "form" (buffer-name) (buffer-substring (point-min) (line-end-position)))
  ;; a tdmrep.json is of another mode
  (session-open "tdmrep.json")
  (dolist (problem (session-wait "problem" #'session-problems))
    (session-tell "json" problem)))

(defun session-run ()
  (condition-case problem
      (progn (session) (kill-emacs 0))
    (error (session-tell "error" problem) (kill-emacs 4))))

;; When it has begun to wait for keys.
(run-with-timer 0.1 nil #'session-run)
